"""Conversions between the number formats of kernels, as a GPU makes them, on numpy arrays.

numpy has no bfloat16 and no float8: arrays of these hold bits (`uint16`, `uint8`), as in Triton's interpreter. Here they are
widened to float32 before arithmetic and narrowed after it, rounding to nearest, ties to even.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter

Array = np.ndarray[Any, Any]

_FLOAT8 = {tl.float8e4nv: torch.float8_e4m3fn, tl.float8e5: torch.float8_e5m2}
_BITS = {tl.bfloat16, *_FLOAT8}


def is_bits(dtype: Any) -> bool:
    """Whether arrays of this Triton type hold bits that numpy cannot calculate with."""
    return dtype.scalar in _BITS


def widen(data: Array, dtype: Any) -> Array:
    """The values of an array: float32 for formats that numpy lacks, the array itself for others."""
    kind = dtype.scalar
    if kind == tl.bfloat16:
        return (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if kind in _FLOAT8:
        wide = torch.from_numpy(np.ascontiguousarray(data)).view(_FLOAT8[kind]).to(torch.float32)
        return np.asarray(wide.numpy())
    return data


def narrow(data: Array, dtype: Any) -> Array:
    """Values as an array of the Triton type `dtype`, bfloat16 or float8; float8 saturates, as Triton's conversions do."""
    kind = dtype.scalar
    single = np.ascontiguousarray(data, dtype=np.float32)
    if kind == tl.bfloat16:
        bits = single.view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        return np.where(np.isnan(single), np.uint16(0x7FC0), rounded.astype(np.uint16))
    largest = torch.finfo(_FLOAT8[kind]).max
    limited = torch.from_numpy(np.where(np.isnan(single), single, np.clip(single, -largest, largest)))
    return np.asarray(limited.to(_FLOAT8[kind]).view(torch.uint8).numpy())


def to_integers(data: Array, dtype: np.dtype[Any]) -> Array:
    """Floating-point values as integers: truncated, limited to the type's range, NaN as zero, as PTX's `cvt.rzi` does.

    PTX has no conversion to 8 bits. It converts to 16, of which the lower 8 remain: 300.0 as int8 is 44, and not 127.
    """
    if dtype.itemsize == 1:
        return to_integers(data, np.dtype(f"{dtype.kind}2")).astype(dtype)
    info = np.iinfo(dtype)
    whole = np.trunc(data.astype(np.float64))
    inside = np.where(np.isnan(whole), 0.0, np.clip(whole, float(info.min), float(info.max)))
    found = np.where(inside >= float(info.max), 0.0, inside).astype(dtype)
    return np.where(inside >= float(info.max), dtype.type(info.max), found)


def convert(data: Array, source: Any, target: Any) -> Array:
    """An array of the Triton type `source` as one of `target`."""
    kind = target.scalar
    if kind == source.scalar:
        return data
    values = widen(data, source)
    if is_bits(kind):
        return narrow(values, kind)
    dtype = triton_interpreter._get_np_dtype(kind)
    if np.issubdtype(values.dtype, np.floating) and np.issubdtype(dtype, np.integer):
        return to_integers(values, dtype)
    converted: Array = values.astype(dtype)
    return converted


def tf32(data: Array) -> Array:
    """float32 rounded to tf32's 10 bits of mantissa, as the matrix units do."""
    bits = data.astype(np.float32).view(np.uint32)
    rounded: Array = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return rounded
