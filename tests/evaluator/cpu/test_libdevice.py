"""Every function of CUDA's libdevice that Triton offers is known to the CPU runner, with the values of the user guide."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import numpy as np
import pytest
from triton.language.extra.cuda import libdevice

from rlkernel.evaluator.cpu.libdevice import function

SYMBOLS = sorted(set(re.findall(r'"(__nv_\w+)"', inspect.getsource(libdevice))))


def test_all_of_libdevice_is_known() -> None:
    assert len(SYMBOLS) > 300
    assert [symbol for symbol in SYMBOLS if function(symbol) is None] == []
    assert function("__nv_nothing") is None


F32 = np.float32
I32 = np.int32


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("normcdff", [F32([0.0, 1.0])], [0.5, 0.8413447]),
        ("fdiv_rn", [F32([1.0]), F32([8.0])], [0.125]),
        ("fast_fdividef", [F32([3.0]), F32([2.0])], [1.5]),
        ("frcp_rn", [F32([4.0])], [0.25]),
        ("frsqrt_rn", [F32([4.0])], [0.5]),
        ("fmaf_rn", [F32([2.0]), F32([3.0]), F32([1.0])], [7.0]),
        ("roundf", [F32([0.5, -0.5, 2.5])], [1.0, -1.0, 3.0]),  # away from zero
        ("roundf", [F32([0.49999997, -0.49999997, 8388609.0])], [0.0, -0.0, 8388609.0]),  # adding a half would round
        ("fmaf", [F32([1 + 2**-12]), F32([1 + 2**-12]), F32([-1 - 2**-11])], [2**-24]),  # lost if the product is rounded
        ("fmaf_rn", [F32([1 + 2**-12]), F32([1 + 2**-12]), F32([-1 - 2**-11])], [2**-24]),
        ("rintf", [F32([0.5, 1.5, 2.5])], [0.0, 2.0, 2.0]),  # to even
        ("remainderf", [F32([5.0]), F32([3.0])], [-1.0]),  # 5 - 3 * rint(5 / 3)
        ("fdimf", [F32([5.0, 1.0]), F32([3.0, 3.0])], [2.0, 0.0]),
        ("saturatef", [F32([-1.0, 0.5, 2.0, math.nan])], [0.0, 0.5, 1.0, 0.0]),
        ("tgammaf", [F32([5.0])], [24.0]),
        ("lgammaf", [F32([5.0])], [math.log(24.0)]),
        ("logbf", [F32([10.0])], [3.0]),
        ("ldexpf", [F32([3.0]), I32([4])], [48.0]),
        ("sinpif", [F32([0.5])], [1.0]),
        ("jnf", [I32([2]), F32([1.0])], [0.114903485]),  # Abramowitz and Stegun, table 9.2
        ("float2int_rn", [F32([2.5, -1e20, math.nan])], [2, -(2**31), 0]),
        ("float2uint_rz", [F32([2.9, -3.0])], [2, 0]),
        ("popc", [I32([7, -1])], [3, 32]),
        ("clz", [I32([1, 0, -1])], [31, 32, 0]),
        ("ffs", [I32([8, 0])], [4, 0]),
        ("brev", [I32([1])], [2**31]),
        ("mul24", [I32([3]), I32([5])], [15]),
        ("mulhi", [I32([2**30]), I32([8])], [2]),
        ("sad", [I32([3]), I32([10]), I32([1])], [8]),
        ("hadd", [I32([3]), I32([6])], [4]),
        ("byte_perm", [I32([0x03020100]), I32([0x07060504]), I32([0x7531])], [0x07050301]),
        ("float_as_int", [F32([1.0])], [0x3F800000]),
        ("norm3df", [F32([2.0]), F32([3.0]), F32([6.0])], [7.0]),
    ],
)
def test_values(name: str, args: list[Any], expected: list[float]) -> None:
    call = function(f"__nv_{name}")
    assert call is not None
    assert np.asarray(call(*args)).tolist() == pytest.approx(expected, rel=1e-6)
