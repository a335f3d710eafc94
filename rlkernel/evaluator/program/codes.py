"""Floating-point numbers of eight bits or fewer: codes, which somebody has made by quantising.

As arguments they are given as they are drawn: a code that is scaled, shifted or moved by its rounding is another code, or none.
As results they are compared by their values in float32, with what one step between codes makes. Two kinds have no values here
and must be equal: scales that are powers of two (e8m0), of which one step is a factor of 2, and two numbers of four bits in one
byte. Source: ours.
"""

from __future__ import annotations

import torch
from torch import nn

VALUED = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz)
"""The codes whose values are compared."""
HALF = (torch.float16, torch.bfloat16)
"""The dtypes of half precision, which are no codes."""
SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
"""Unsigned dtypes for which torch has few operators (no random numbers, no extremes), and signed ones of their size."""


def is_code(dtype: torch.dtype) -> bool:
    """Whether tensors of a dtype hold codes.

    >>> is_code(torch.float8_e4m3fn), is_code(torch.float16), is_code(torch.int8)
    (True, False, False)
    """
    return dtype.is_floating_point and dtype.itemsize == 1


def holds_numbers(tensor: torch.Tensor) -> bool:
    """Whether a tensor's elements are floating-point numbers that may be scaled and widened."""
    return tensor.is_floating_point() and not is_code(tensor.dtype)


def equal_or_wrong(dtype: torch.dtype) -> bool:
    """Whether results of a dtype must be equal: whole numbers, and codes without values.

    >>> equal_or_wrong(torch.int32), equal_or_wrong(torch.float8_e8m0fnu), equal_or_wrong(torch.float8_e5m2)
    (True, True, False)
    """
    return not (dtype.is_floating_point or dtype.is_complex) or (is_code(dtype) and dtype not in VALUED)


def valued(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor for operators that know no codes: the values in float32, or the bytes where there are none. Others unchanged."""
    if not is_code(tensor.dtype):
        return tensor
    return tensor.to(torch.float32) if tensor.dtype in VALUED else tensor.view(torch.uint8)


def widened(model: nn.Module) -> nn.Module:
    """A module, turned to float64 in place. Its codes stay."""
    with torch.no_grad():
        model._apply(lambda tensor: tensor.double() if holds_numbers(tensor) else tensor)  # type: ignore[no-untyped-call]
    return model
