"""Launches are bound as Triton binds them: what its own `run` refuses before it compiles is refused, and with the same error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.trace.binding import bind, grid_of
from rlkernel.evaluator.trace.intercepting import intercepting
from rlkernel.evaluator.trace.kernels import KernelTable
from rlkernel.evaluator.trace.recorder import Recorder


@triton.jit
def kernel(x, n, scale=1.0, flag: tl.constexpr = False, BLOCK: tl.constexpr = 64):
    tl.store(x, n)


class Compiled(Exception):
    """Triton would compile now: it has accepted the arguments."""

    def __init__(self, signature: dict[str, Any], constants: dict[Any, Any]) -> None:
        super().__init__()
        self.constants = constants


@pytest.fixture(scope="module", autouse=True)
def target() -> Iterator[None]:
    profile = PROFILES["h200"]
    before = triton.runtime.driver._active
    with intercepting(Recorder(), KernelTable(), "f", GPUTarget("cuda", profile.arch, 32), profile.properties):
        yield
    triton.runtime.driver._active = before


RUN = JITFunction.run
"""Triton's own, before anything stands in its place."""
VALUES: dict[str, Any] = {
    "tensor": torch.zeros(4), "int": 7, "one": 1, "big": 2**40, "float": 0.5, "bool": True, "none": None, "string": "a",
    "list": [1], "tuple": (1, 2), "numpy int": np.int64(3), "numpy float": np.float64(0.5), "dtype": tl.float32,
    "torch dtype": torch.float32, "constexpr": tl.constexpr(4), "huge": 2**70, "complex": 1j,
}  # fmt: skip
NAMES = ["x", "n", "scale", "flag", "BLOCK", "num_warps", "num_stages", "unknown", "grid_size", "maxnreg", "stream"]


def outcome(call: Any) -> tuple[str, str]:
    try:
        call()
    except Compiled:
        return "accepted", ""
    except Exception as error:
        return type(error).__name__, str(error).replace("dynamic_func()", "kernel()")
    return "accepted", ""


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.sampled_from(sorted(VALUES)), max_size=6),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(sorted(VALUES)), max_size=4),
)
def test_arguments_are_accepted_and_refused_as_by_triton(positions: list[str], names: dict[str, str]) -> None:
    args = tuple(VALUES[name] for name in positions)
    kwargs = {key: VALUES[name] for key, name in names.items() if key not in ("num_warps", "num_stages", "maxnreg")}

    def compiled(self: Any, key: Any, signature: Any, device: Any, constants: Any, *rest: Any) -> None:
        raise Compiled(signature, constants)

    def real() -> None:
        with mock.patch.object(JITFunction, "_do_compile", compiled):
            kernel.device_caches.clear()
            RUN(kernel, *args, grid=(1,), warmup=False, **kwargs)

    assert outcome(lambda: bind(kernel, args, kwargs)) == outcome(real)


def test_what_is_bound_is_what_was_passed() -> None:
    x = torch.zeros(4)
    bound = bind(kernel, (x,), {"n": 3, "BLOCK": 128, "num_warps": 8})
    assert bound.arguments["x"] is x
    assert {name: value for name, value in bound.arguments.items() if name != "x"} == {
        "n": 3, "scale": 1.0, "flag": False, "BLOCK": 128,
    }  # fmt: skip
    assert bound.options == {"num_warps": 8}
    assert bind(kernel, ((x, 2),), {"n": 3}).arguments["x"][0] is x


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ((3,), (3, 1, 1)), ([3, 2], (3, 2, 1)), ((3, 2, 5, 7), (3, 2, 5)), (torch.Size([4]), (4, 1, 1)), ((True, 2), (1, 2, 1)),
        ((np.int64(6),), (6, 1, 1)), ((0,), (0, 1, 1)), ((4, 0), (0, 1, 1)), 
        (lambda meta: (meta["n"], 2), (9, 2, 1)),
    ],
)  # fmt: skip
def test_grids(grid: Any, expected: tuple[int, int, int]) -> None:
    assert grid_of(grid, {"n": 9}) == expected


@pytest.mark.parametrize(
    ("grid", "error"),
    [((1.5,), TypeError), ((2.0,), TypeError), (4, TypeError), ((), IndexError), ((1, "2"), TypeError), (None, AssertionError),
     ((2**31,), OverflowError), (lambda meta: (meta["n"] / 4,), TypeError), (lambda meta: meta["m"], KeyError)],
)  # fmt: skip
def test_grids_that_are_refused(grid: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        grid_of(grid, {"n": 9})
