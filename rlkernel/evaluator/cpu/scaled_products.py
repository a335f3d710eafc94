"""Operands of `tl.dot_scaled`: numbers of 4 and 8 bits, of which each group along the sum has a factor.

A card without matrix units for them, such as an H200, widens both operands to 16 bits, multiplies them by their factors and takes
the product in these; a card that has such units adds up the same products. Numbers of 4 bits lie in pairs in bytes, the first in
the lower half. Factors of 8 bits are powers of two, or float8 where a group has 16 numbers.
Source: the language's page of `tl.dot_scaled`; `DecomposeScaledBlocked.cpp` in Triton's compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.numbers import Array, narrow, widen

_FOURS = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0], np.float32)
"""The numbers of 4 bits, `e2m1`."""
_BIAS, _ZERO, _NO_NUMBER = 127, 0, 255
"""The factor of 1, the least, whose power is no normal number, so that it is 0 once it is widened, and the one that makes a group
not a number."""
FOUR_BITS = "E2M1"


def computed_in(formats: tuple[str, str]) -> Any:
    """The type of 16 bits in which a product of these formats is taken."""
    return tl.float16 if "FP16" in formats else tl.bfloat16


def length(operand: Any, form: str, packed: bool) -> int:
    """How many terms the sums of a product have, by its first operand."""
    return int(operand.data.shape[-1]) * (2 if form == FOUR_BITS and packed else 1)


def widened(operand: Any, scale: Any, form: str, packed: bool, kind: Any, *, first: bool, fast: bool) -> TensorHandle:
    """An operand with its factors, in the type `kind`. packed: numbers of 4 bits lie in pairs along the sum, and not along the
    other axis; first: its sum runs along the last axis; fast: no factor makes a group not a number."""
    values = _unpacked(operand.data, -1 if packed == first else -2) if form == FOUR_BITS else widen(operand.data, operand.dtype)
    values = _rounded(values, kind)
    if scale is not None:
        factors = _factors(scale, fast=fast)
        along = values.shape[-1] if first else values.shape[-2]
        factors = np.repeat(factors, along // factors.shape[-1], axis=-1)
        factors = factors if first else np.swapaxes(factors, -1, -2)
        values = _rounded(values * _rounded(factors, kind), kind)
    data = narrow(values, kind) if kind == tl.bfloat16 else values.astype(np.float16)
    return TensorHandle(data, kind)


def _unpacked(data: Array, axis: int) -> Array:
    """The numbers of 4 bits that lie in bytes along an axis."""
    pairs = np.stack((data & 0xF, data >> 4), axis=axis if axis == -1 else data.ndim - 1)
    shape = list(data.shape)
    shape[axis] *= 2
    return _FOURS[pairs].reshape(shape)


def _factors(scale: Any, *, fast: bool) -> Array:
    if scale.dtype.scalar == tl.float8e4nv:
        return widen(scale.data, scale.dtype)
    bits = scale.data.astype(np.int32)
    with np.errstate(over="ignore"):
        powers = np.where(bits == _ZERO, np.float32(0.0), np.ldexp(np.float32(1.0), bits - _BIAS))
    return powers if fast else np.where(bits == _NO_NUMBER, np.float32(np.nan), powers)


def _rounded(values: Array, kind: Any) -> Array:
    """Values as the type `kind` holds them, in float32."""
    if kind == tl.float16:
        with np.errstate(over="ignore"):
            return values.astype(np.float16).astype(np.float32)
    return widen(narrow(values, kind), kind)
