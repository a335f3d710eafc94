"""Products of blocks in the formats of tensor cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.arithmetic import Arithmetic
from rlkernel.evaluator.cpu.numbers import Array, narrow

SUMS = (2048.0, 1.0, 1.0, 1.0)
"""The sums of 16 products each; half precision has even numbers alone from 2048 on."""


def product(left: Array, right: Array, kind: Any, total: Any) -> Array:
    def block(values: Array, dtype: Any) -> Any:
        return TensorHandle(narrow(values, dtype) if dtype == tl.float8e5 else values, dtype)

    held = np.zeros((*left.shape[:-1], right.shape[-1]), np.float16 if total == tl.float16 else np.float32)
    made = Arithmetic().create_dot(block(left, kind), block(right, kind), TensorHandle(held, total), "tf32", 0)
    assert made.dtype == total
    return np.asarray(made.data)


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize(
    ("kind", "total", "expected"),
    [(tl.float16, tl.float16, 2048.0), (tl.float16, tl.float32, 2051.0), (tl.float8e5, tl.float16, 2050.0)],
)
def test_an_accumulator_of_half_precision_is_rounded_as_often_as_a_tensor_core_does(
    batch: tuple[int, ...], kind: Any, total: Any, expected: float
) -> None:
    """2048 + 1 is rounded to the even 2048, three times. Of operands of 8 bits 32 are added at once: 2048 + 1, and 2048 + 2."""
    left = np.repeat(np.array(SUMS) / 16, 16).astype(np.float16) * np.ones((*batch, 16, 1), np.float16)
    right = np.ones((*batch, 64, 16), np.float16)
    assert product(left, right, kind, total).tolist() == np.full((*batch, 16, 16), expected).tolist()


def test_half_precision_overflows_on_the_way() -> None:
    left = np.concatenate([np.full((16, 16), 64.0), np.full((16, 16), -64.0)], axis=1).astype(np.float16)
    right = np.full((32, 16), 64.0, np.float16)
    assert product(left, right, tl.float16, tl.float32)[0, 0] == 0.0
    assert product(left, right, tl.float16, tl.float16)[0, 0] == np.inf
