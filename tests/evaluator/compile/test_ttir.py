"""Which arguments a kernel stores to and loads from, by TTIR."""

from __future__ import annotations

from rlkernel.evaluator.compile.ttir import touched_arguments
from rlkernel.evaluator.program.first_call import Touched

STRAIGHT = """
module {
  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32>, %n: i32) attributes {noinline = false} {
    %0 = tt.get_program_id x : i32
    %1 = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %2 = tt.addptr %1, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %3 = tt.load %2, %m : tensor<64x!tt.ptr<f32>>
    %4 = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %5 = tt.addptr %4, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    STORE
    tt.return
  }
}
"""


def test_a_store_names_its_pointer_and_not_its_value() -> None:
    assert touched_arguments(STRAIGHT.replace("STORE", "tt.store %5, %3, %m : tensor<64x!tt.ptr<f32>>")) == Touched(
        ("y",), ("x",)
    )


def test_a_kernel_without_a_store() -> None:
    assert touched_arguments(STRAIGHT.replace("STORE", "")) == Touched((), ("x",))


def test_atomics_are_stores_and_loads() -> None:
    line = "%6 = tt.atomic_rmw fadd, acq_rel, gpu, %5, %3, %m : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> tensor<64xf32>"
    assert touched_arguments(STRAIGHT.replace("STORE", line)) == Touched(("y",), ("x", "y"))


def test_pointers_carried_by_a_loop() -> None:
    loop = """%7 = scf.for %i = %c0 to %n step %c1 iter_args(%arg = %5) -> (tensor<64x!tt.ptr<f32>>)  : i32 {
      tt.store %arg, %3, %m : tensor<64x!tt.ptr<f32>>
      %8 = tt.addptr %arg, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      scf.yield %8 : tensor<64x!tt.ptr<f32>>
    }"""
    assert touched_arguments(STRAIGHT.replace("STORE", loop)).stores == ("y",)
