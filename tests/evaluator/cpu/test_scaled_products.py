"""Products of numbers of 4 and 8 bits with factors, as `tl.dot_scaled` takes them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.arithmetic import Arithmetic
from rlkernel.evaluator.cpu.numbers import Array, narrow

FOURS, EIGHTS, HALF, WIDE = (SimpleNamespace(name=name) for name in ("E2M1", "E4M3", "FP16", "BF16"))
ROWS, LENGTH, COLS = 16, 64, 8


def bytes_of(values: Array) -> Any:
    return TensorHandle(values.astype(np.uint8), tl.uint8)


def product(
    left: Any, left_scale: Any, right: Any, right_scale: Any, forms: Any, a_packed: bool, b_packed: bool, fast: bool = False
) -> Array:
    held = TensorHandle(np.zeros((ROWS, COLS), np.float32), tl.float32)
    made = Arithmetic().create_dot_scaled(
        left, left_scale, forms[0], right, right_scale, forms[1], fast, a_packed, b_packed, held
    )
    assert made.dtype == tl.float32
    return np.asarray(made.data)


@pytest.mark.parametrize("packed", [(True, True), (False, True), (True, False)])
def test_numbers_of_four_bits_lie_in_pairs_and_each_group_has_a_factor(packed: tuple[bool, bool]) -> None:
    draw = np.random.default_rng(0)
    left, right = draw.integers(0, 16, (ROWS, LENGTH)), draw.integers(0, 16, (LENGTH, COLS))
    scales = draw.integers(120, 135, (ROWS, LENGTH // 32)), draw.integers(120, 135, (COLS, LENGTH // 32))
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    signed = [np.where(bits & 8, -1.0, 1.0) * numbers[bits & 7] for bits in (left, right)]
    factors = [np.repeat(2.0 ** (scale - 127.0), 32, axis=1) for scale in scales]
    expected = (signed[0] * factors[0]) @ (signed[1] * factors[1].T)
    lefts = left[:, ::2] | left[:, 1::2] << 4 if packed[0] else left[::2] | left[1::2] << 4
    rights = right[::2] | right[1::2] << 4 if packed[1] else right[:, ::2] | right[:, 1::2] << 4
    made = product(bytes_of(lefts), bytes_of(scales[0]), bytes_of(rights), bytes_of(scales[1]), (FOURS, FOURS), *packed)
    np.testing.assert_allclose(made, expected, rtol=1e-6)


def test_operands_without_a_factor_are_taken_as_they_are() -> None:
    left, right = np.full((ROWS, LENGTH), 1.5, np.float32), np.full((LENGTH, COLS), 2.0, np.float32)
    eights = TensorHandle(narrow(left, tl.float8e4nv), tl.float8e4nv)
    wide = TensorHandle(narrow(right, tl.bfloat16), tl.bfloat16)
    assert product(eights, None, wide, None, (EIGHTS, WIDE), True, True).tolist() == np.full((ROWS, COLS), 192.0).tolist()


def test_beside_half_precision_factors_overflow_as_it_does() -> None:
    left = bytes_of(np.full((ROWS, LENGTH // 2), 0x22))  # ones
    right = TensorHandle(np.ones((LENGTH, COLS), np.float16), tl.float16)
    large = bytes_of(np.full((ROWS, LENGTH // 32), 127 + 16))
    assert np.isinf(product(left, large, right, None, (FOURS, HALF), True, True)).all()
    wide = TensorHandle(narrow(np.ones((LENGTH, COLS), np.float32), tl.bfloat16), tl.bfloat16)
    assert (product(left, large, wide, None, (FOURS, WIDE), True, True) == 65536.0 * LENGTH).all()


def test_the_largest_factor_is_no_number_unless_it_is_fast() -> None:
    left, right = bytes_of(np.full((ROWS, LENGTH // 2), 0x22)), bytes_of(np.full((LENGTH // 2, COLS), 0x22))
    scale, plain = bytes_of(np.full((ROWS, LENGTH // 32), 255)), bytes_of(np.full((COLS, LENGTH // 32), 127))
    assert np.isnan(product(left, scale, right, plain, (FOURS, FOURS), True, True)).all()
    assert np.isinf(product(left, scale, right, plain, (FOURS, FOURS), True, True, fast=True)).all()


@pytest.mark.parametrize(("bits", "factor"), [(0, 0.0), (1, 2.0**-126), (127, 1.0)])
def test_the_least_factor_is_zero(bits: int, factor: float) -> None:
    """A byte becomes a factor as the exponent of a number without a fraction, and 0 is that of 0."""
    left = TensorHandle(narrow(np.full((ROWS, LENGTH), 2.0**40, np.float32), tl.bfloat16), tl.bfloat16)
    right = TensorHandle(narrow(np.ones((LENGTH, COLS), np.float32), tl.bfloat16), tl.bfloat16)
    scale = bytes_of(np.full((ROWS, LENGTH // 32), bits))
    assert (product(left, scale, right, None, (WIDE, WIDE), True, True) == factor * 2.0**40 * LENGTH).all()
