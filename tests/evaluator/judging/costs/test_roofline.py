"""Modelled times by hand, on the h200 profile: 4.3e6 bytes/us, 2.5 us a launch, 6.7e7 flops/us, 132 processors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.judging.costs.operations import flops
from rlkernel.evaluator.judging.costs.roofline import floor_us, is_free, launch_us, operator_us, physical_floor_us
from rlkernel.evaluator.program.schema import Op
from rlkernel.types import Precision

BIG = 1 << 26


def meta(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, device="meta")


def test_elementwise_operator_is_bound_by_memory() -> None:
    x, y = meta(BIG), meta(BIG)
    # reads and writes 2^28 bytes each
    assert operator_us(Op("aten.relu.default", (), {}, (1,)), [x], [y], H200, Precision.STRICT) == pytest.approx(
        2.5 + 2 * 2**28 / 4.3e6
    )


def test_special_functions_of_an_operator_take_as_long_as_those_of_a_kernel() -> None:
    """A processor begins 16 in a cycle. Of bfloat16 they take longer than the bytes of a mish, and not than those of a gelu."""

    def us(name: str, dtype: torch.dtype) -> float:
        x, y = meta(BIG).to(dtype), meta(BIG).to(dtype)
        return operator_us(Op(f"aten.{name}.default", (), {}, (1,)), [x], [y], H200, Precision.STRICT) - 2.5

    one = BIG / (132 * 16 * H200.sm_khz / 1000) / 0.8
    assert us("mish", torch.bfloat16) == pytest.approx(5 * one)
    assert 5 * one == pytest.approx(1.6 * us("relu", torch.bfloat16), rel=0.02)
    assert us("gelu", torch.bfloat16) == us("relu", torch.bfloat16) == pytest.approx(2 * 2**27 / 4.3e6)
    assert us("mish", torch.float32) == us("relu", torch.float32)


def test_matrix_product_is_bound_by_arithmetic_at_80_percent_of_the_peak() -> None:
    a, b, c = meta(4096, 4096), meta(4096, 4096), meta(4096, 4096)
    want = 2.5 + 2 * 4096**3 / (0.8 * 6.7e7)
    assert operator_us(Op("aten.mm.default", (), {}, (2,)), [a, b], [c], H200, Precision.STRICT) == pytest.approx(want)


def test_views_and_allocations_are_free() -> None:
    x = meta(8, 8)
    assert operator_us(Op("aten.t.default", (), {}, (1,)), [x], [x.t()], H200, Precision.STRICT) == 0.0
    assert operator_us(Op("aten.empty_like.default", (), {}, (1,)), [x], [meta(8, 8)], H200, Precision.STRICT) == 0.0


def test_in_place_operators_are_not_free() -> None:
    x = meta(BIG)
    assert operator_us(Op("aten.relu_.default", (), {}, (0,)), [x], [x], H200, Precision.STRICT) == pytest.approx(
        2.5 + 2 * 2**28 / 4.3e6
    )


def test_broadcast_operands_count_once() -> None:
    x, bias, y = meta(1024, 1024), meta(1024).expand(1024, 1024), meta(1024, 1024)
    want = 2.5 + (2 * 2**22 + 2**12) / 4.3e6
    assert operator_us(Op("aten.add.Tensor", (), {}, (2,)), [x, bias], [y], H200, Precision.STRICT) == pytest.approx(want)


def test_launch_reads_each_tensor_from_memory_at_most_once() -> None:
    size = 2**28
    counts = Counts(programs=100_000, traffic={0: 4.0 * size, 1: size}, stored={1: size})
    # dram: tensor 0 once, tensor 1 written once -> 2^29 bytes: 124.9 us; L2: 5 * 2^28 at 1.2e7: 111.8 us
    assert launch_us(counts, [size, size], 4, H200) == pytest.approx(2.5 + 2 * size / 4.3e6)


def test_a_small_grid_gets_a_share_of_the_device() -> None:
    size = 2**28
    whole = launch_us(Counts(programs=132, traffic={0: size}), [size], 4, H200) - 2.5
    one = launch_us(Counts(programs=1, traffic={0: size}), [size], 4, H200) - 2.5
    assert one == pytest.approx(whole * 132 / 2.5)


def test_a_program_computes_with_one_processor() -> None:
    """For 66 programs half of the processors compute, with tensor cores or without, while 66 * 2.5 / 132 of the bandwidth is all
    of it; and where one of 132 programs does half of the work, 2 processors' worth of them compute."""
    work, size, whole_us = 1.3e10, 2**28, 1.3e10 / (0.8 * 6.7e7)
    products_us = work / (0.8 * 7.9e8)

    def us(programs: int, **counted: Any) -> float:
        return launch_us(Counts(programs=programs, **counted), [size], 4, H200) - 2.5

    assert [us(n, flops=work) for n in (132, 66, 1)] == pytest.approx([whole_us, 2 * whole_us, 132 * whole_us])
    assert us(66, matrix_flops={"bf16": work}) == pytest.approx(2 * products_us)
    assert us(66, traffic={0: float(size)}) == pytest.approx(size / 4.3e6)
    assert us(132, flops=work, largest=(0.0, work / 2, 0.0)) == pytest.approx(66 * whole_us)


def test_tiny_programs_are_bound_by_starting_them() -> None:
    counts = Counts(programs=1_000_000, traffic={0: 2**20})
    # 64 / 4 warps = 16 programs on each of 132 processors at a time, 0.6 us each
    assert launch_us(counts, [2**20], 4, H200) == pytest.approx(2.5 + 1_000_000 * 0.6 / (132 * 16))


def test_floor() -> None:
    assert floor_us(4.3e6, 4.3e6, {}, H200, Precision.STRICT) == pytest.approx(0.9 * 2)
    # 7.9e8 flops/us of half precision, a third of that for float32; half of the work may be behind a causal mask
    assert floor_us(0, 0, {torch.float32: 7.9e8}, H200, Precision.STRICT) == pytest.approx(0.9 * 0.5 * 3)
    assert floor_us(0, 0, {torch.float16: 7.9e8}, H200, Precision.STRICT) == pytest.approx(0.9 * 0.5)
    # tf32: 4.0e8 flops/us, faster than three products of 7.9e8; it changes nothing for other dtypes
    assert floor_us(0, 0, {torch.float32: 8.0e8}, H200, Precision.PYTORCH) == pytest.approx(0.9 * 0.5 * 2)
    assert floor_us(0, 0, {torch.float64: 7.9e8, torch.float16: 7.9e8}, H200, Precision.TF32) == pytest.approx(0.9 * 0.5 * 4)


def test_the_floor_of_a_measured_time_is_a_launch_and_what_must_leave_l2() -> None:
    assert physical_floor_us(4096, H200) == pytest.approx(0.2 * 2.5)
    size = 2**30
    # Its memory's clock promises 4.9 TB/s: 3201 MHz x 2 x 6144 bits / 8.
    assert physical_floor_us(size, H200) == pytest.approx(0.9 * (size - (60 << 20)) / (3201 * 2 * 6144 / 8))


def test_float32_convolutions_have_tf32s_peak_as_pytorch_ships_and_products_have_not() -> None:
    a, b, c = meta(4096, 4096), meta(4096, 4096), meta(4096, 4096)
    x, w, y = meta(8, 64, 128, 128), meta(64, 64, 3, 3), meta(8, 64, 128, 128)
    product, convolution = Op("aten.mm.default", (), {}, (2,)), Op("aten.convolution.default", (0, 1), {}, (2,))
    peaks = {Precision.STRICT: (6.7e7, 6.7e7), Precision.PYTORCH: (6.7e7, 4.0e8), Precision.TF32: (4.0e8, 4.0e8)}
    for precision, (of_product, of_convolution) in peaks.items():
        us = operator_us(product, [a, b], [c], H200, precision)
        assert us == pytest.approx(2.5 + 2 * 4096**3 / (0.8 * of_product))
        us = operator_us(convolution, [x, w], [y], H200, precision)
        flops, moved = 2 * 8 * 64 * 128 * 128 * 64 * 9, 4 * (2 * x.numel() + w.numel())
        assert us == pytest.approx(2.5 + max(flops / (0.8 * of_convolution), moved / 4.3e6))


def test_operators_that_write_into_their_arguments_are_not_free() -> None:
    x, values, places = torch.empty(4, 8, device="meta"), torch.empty(4, device="meta"), torch.empty(4, device="meta")
    for name in (
        "aten.empty_like.out",
        "aten.max.dim_max",
        "aten.log_sigmoid_forward.output",
        "aten.relu_.default",
        "aten.mm.out",
    ):
        assert not is_free(Op(name, (), {}, ()), [x, values, places], [values, places])
    assert is_free(Op("aten.transpose.int", (), {}, ()), [x], [x.T])


def test_products_over_a_batch_count_their_arithmetic() -> None:
    out, a, b = torch.empty(3, 5, device="meta"), torch.empty(2, 3, 4, device="meta"), torch.empty(2, 4, 5, device="meta")
    assert flops(Op("aten.addbmm.default", (), {}, ()), [out, a, b], [out]) == 2 * 2 * 3 * 4 * 5


def test_atomics_on_words_that_memory_chooses_meet_as_often_on_each() -> None:
    """A million numbers of 8 bytes that are counted in 10 words, and in so many that none has to wait."""
    numbers = np.zeros(1000, dtype=np.uint64)
    counts = Counts(programs=1000)
    each = Counts()
    each.scatter(0, numbers, 8)
    counts.add(each, 1000)
    assert launch_us(counts, [80], 4, H200) == pytest.approx(H200.launch_us + 1e6 / 10 / 2000)
    assert launch_us(counts, [8 << 20], 4, H200) == pytest.approx(
        H200.launch_us + 1e6 * (64 - 8) / H200.l2_bytes_per_us, rel=0.01
    )
    beside = Counts()
    beside.scatter(0, np.arange(0, 8000, 8, dtype=np.uint64), 8)
    assert beside.traffic[0] == 56 + 8 * 999, "but for the first they lie in one sector with others"
