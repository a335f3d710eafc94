"""Number formats of kernels: golden bits, and agreement with torch over generated values."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.machine import Machine
from rlkernel.evaluator.cpu.numbers import convert, narrow, tf32, to_integers, widen


def test_bfloat16_rounds_to_the_nearest_even() -> None:
    # 1 + 2^-8 lies between 1 and 1 + 2^-7: to the even one; 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6: to the even one
    values = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -2.0, math.inf, math.nan], dtype=np.float32)
    assert [hex(b) for b in narrow(values, tl.bfloat16)] == ["0x3f80", "0x3f80", "0x3f82", "0xc000", "0x7f80", "0x7fc0"]


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
def test_bfloat16_is_torchs(values: list[float]) -> None:
    array = np.array(values, dtype=np.float32)
    assert np.array_equal(widen(narrow(array, tl.bfloat16), tl.bfloat16), torch.from_numpy(array).bfloat16().float().numpy())


def test_float8_saturates() -> None:
    values = np.array([0.5, 1000.0, -1000.0], dtype=np.float32)
    assert widen(narrow(values, tl.float8e4nv), tl.float8e4nv).tolist() == [0.5, 448.0, -448.0]
    assert widen(narrow(values * 100, tl.float8e5), tl.float8e5).tolist() == [48.0, 57344.0, -57344.0]


def test_integers_saturate_and_nan_is_zero() -> None:
    values = np.array([1.9, -1.9, 1e20, -1e20, math.nan])
    assert to_integers(values, np.dtype(np.int32)).tolist() == [1, -1, 2**31 - 1, -(2**31), 0]
    assert to_integers(values, np.dtype(np.uint16)).tolist() == [1, 0, 65535, 0, 0]


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_integers_of_8_bits_are_the_lower_half_of_16(values: list[float]) -> None:
    array = np.array(values, dtype=np.float32)
    for kind in (np.int8, np.uint8):
        wide = to_integers(array, np.dtype(f"{np.dtype(kind).kind}2"))
        assert to_integers(array, np.dtype(kind)).tolist() == (wide & 255).astype(kind).tolist()
    assert to_integers(np.array([300.0, -129.0]), np.dtype(np.int8)).tolist() == [44, 127]


def test_conversions_go_by_values_not_bits() -> None:
    one = narrow(np.array([1.5], dtype=np.float32), tl.bfloat16)
    assert convert(one, tl.bfloat16, tl.float16).tolist() == [1.5]
    assert convert(one, tl.bfloat16, tl.int32).tolist() == [1]
    assert convert(np.array([3], dtype=np.int32), tl.int32, tl.bfloat16).tolist() == [0x4040]
    assert convert(one, tl.bfloat16, tl.bfloat16) is one


@pytest.mark.parametrize(("value", "rounded"), [(1.0, 1.0), (1 + 2**-12, 1.0), (1 + 2**-10, 1 + 2**-10)])
def test_tf32_keeps_ten_bits(value: float, rounded: float) -> None:
    assert float(tf32(np.array([value], dtype=np.float32))[0]) == rounded


def test_integers_of_one_bit_wrap() -> None:
    """1 + 1 is 0 and 0 - 1 is 1, as LLVM adds and subtracts an `i1`."""
    machine = Machine()
    left, right = (TensorHandle(np.array(bits, dtype=bool), tl.int1) for bits in ([0, 0, 1, 1], [0, 1, 0, 1]))
    assert machine.create_add(left, right).data.tolist() == [False, True, True, False]
    assert machine.create_sub(left, right).data.tolist() == [False, True, True, False]
    assert machine.create_mul(left, right).data.tolist() == [False, False, False, True]
