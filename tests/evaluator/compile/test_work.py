"""What compiling a kernel takes is counted beforehand, on whatever machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rlkernel.evaluator.compile import work
from rlkernel.evaluator.compile.compiler import compile_program
from rlkernel.evaluator.compile.signature import CompileFailed
from rlkernel.evaluator.compile.work import instructions
from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.program.constexpr_functions import MAX_BITS, growth
from rlkernel.evaluator.program.schema import Config, Function, Launch, Program
from rlkernel.evaluator.program.values import FunctionRef, ModuleRef, TensorRef, Value

TL: dict[str, Value] = {"tl": ModuleRef("triton.language")}
HELPER = """def h(n, D: tl.constexpr):
    if D > 0:
        n = h(n, D - 1) + h(n + 1, D - 1) + h(n + 2, D - 1)
    return n
"""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def call(*body: str, options: dict[str, int] | None = None) -> Any:
        text = "def k(x, n, B: tl.constexpr):\n" + "".join(f"    {line}\n" for line in body)
        functions = (Function("k", text, 1, {**TL, "h": FunctionRef(1)}), Function("h", HELPER, 9, {"h": FunctionRef(1)}))
        launch = Launch(0, {"x": TensorRef(0), "n": 64}, (Config({"B": 64}, options or {}, (1, 1, 1)),), 1)
        program = Program(functions, (), (), {}, (0,), (launch,), TensorRef(0))
        return compile_program(program, ([], [torch.empty(64, device="meta")]), PROFILES["h200"], tmp_path / "kept", None)

    return call


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (("for j in tl.static_range(10**9):", "    pass"), "line 3: the kernel unrolls to more than 60000 operations"),
        (("for j in tl.static_range(200):", "    for l in tl.static_range(300):", "        n += j"), "unrolls to more than"),
        (("y: tl.constexpr = 9 ** 9 ** 9 ** 9",), "line 2: a constant of more than 4096 bits or items"),
        (("y: tl.constexpr = 1 << 10 ** 12",), "a constant of more than"),
        (("y = 'a' * 10 ** 11",), "a constant of more than"),
        (("y = (1, 2) * 10 ** 11",), "a constant of more than"),
        (("n = h(n, 20)", "tl.store(x, n)"), "line 1: more than 200000 operations per thread"),
        # 512 numbers of each thread, and each of 100 turns adds an addition that nothing simplifies.
        (
            (
                "i = tl.arange(0, 16384)",
                "a = tl.load(x + i)",
                "for j in tl.static_range(100):",
                "    a = tl.abs(a) + j",
                "tl.store(x + i, a)",
            ),
            "kernel k: more than 40000 operations per thread",
        ),
    ],
)
def test_what_would_take_too_long_is_refused(build: Callable[..., Any], body: tuple[str, ...], message: str) -> None:
    with pytest.raises(CompileFailed, match=message):
        build(*body, options={"num_warps": 1})


def test_a_tile_too_large_for_its_warps_is_not_assembled(build: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ("i = tl.arange(0, 2048)", "tl.store(x + i, tl.erf(tl.log(tl.load(x + i))))")
    monkeypatch.setattr(work, "MAX_LINES", 2_000)  # 60,000 are a matter of 20 s
    assert build(*lines, options={"num_warps": 4})  # 16 numbers of each thread, which take about 75 lines each
    with pytest.raises(CompileFailed, match=r"kernel k: \d{4} lines of PTX, of at most 2000: take smaller tiles or more warps"):
        build(*lines, options={"num_warps": 1})


def test_what_is_usual_is_compiled(build: Callable[..., Any]) -> None:
    lines = ("i = tl.arange(0, B)", "a = tl.load(x + i)", "for j in tl.static_range(32):", "    a = a * 2 ** 10 + (1 << 3) * j")
    assert build(*lines, "tl.store(x + i, a + h(n, 2))")


def test_what_is_simplified_away_does_not_count(build: Callable[..., Any]) -> None:
    # Sorting 8,192 numbers in 8 warps is 54,000 operations of a thread as it is written, and 32,000 when it is simplified.
    assert build("i = tl.arange(0, 8192)", "tl.store(x + i, tl.sort(tl.load(x + i)))", options={"num_warps": 8})


@pytest.mark.parametrize(
    ("method", "left", "right", "size"),
    [
        ("__pow__", 2, 10, 20), ("__pow__", 1, 10**9, 0), ("__pow__", 2, -1, 0), ("__lshift__", 1, 40, 41),
        ("__lshift__", 0, 1, 0),
        ("__mul__", 7, 7, 6), ("__mul__", "ab", 3, 6), ("__mul__", 3, (1, 2), 6), ("__add__", (1,), (2, 3), 3),
        ("__mul__", 2.0, 3, 0),
        ("__add__", 255, 1, 8), ("__mul__", None, 3, 0),
    ],
)  # fmt: skip
def test_bounds_on_constants(method: str, left: Any, right: Any, size: int) -> None:
    assert growth(method, left, right) == size <= MAX_BITS


def test_operations_are_counted_with_what_is_called() -> None:
    code = """module {
  tt.func public @k(%x: !tt.ptr<f32>) {
    %0 = arith.addf %a, %b : tensor<64x32xf32>
    %1 = tt.call @h(%0) : (f32) -> f32
    %2 = tt.call @h(%1) : (f32) -> f32
  }
  tt.func private @h(%a: f32) {
    %0 = arith.addf %a, %a : f32
  }
}"""
    # k: 2048 / 128 = 16, two calls and a bracket; h, twice: an addition, a bracket, and the module's bracket
    assert instructions(code, 128) == 16 + 2 + 1 + 2 * 3


def test_helpers_with_other_constants_are_other_functions() -> None:
    """As Triton 3.6 names them. h of 2 calls h of 1 three times, which calls h of 0 three times: an addition, two brackets."""
    name = '@"kernel.h__i32__(1,)cconstexpr_{}_"'.format
    lines = ["  tt.func public @k(%n: i32) {", f"    %0 = tt.call {name(2)}(%n) : (i32) -> i32", "  }"]
    for depth in (2, 1, 0):
        lines.append(f"  tt.func private {name(depth)}(%n: i32) -> i32 {{")
        lines += [f"    %{i} = tt.call {name(depth - 1)}(%n) : (i32) -> i32" for i in range(3 * (depth > 0))]
        lines += ["    %9 = arith.addi %n, %n : i32", "  }"]
    # h of 0: 2 lines behind its head; h of 1: 3 calls and 2, and 3 times 2; h of 2: 5 and 3 times that; k: a call and a bracket
    assert instructions("\n".join(lines), 32) == 2 + (5 + 3 * (5 + 3 * 2)) == 40
