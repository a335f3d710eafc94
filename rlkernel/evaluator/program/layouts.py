"""How operators lay out what they make: as a GPU does, whichever device they run on.

Kernels are given strides that were recorded on tensors without data. An operator whose result lies otherwise on the device
where the Program is executed would have them read other elements, so its result is moved to where the trace says that it is.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch._prims_common import suggest_memory_format

Strides = tuple[tuple[int, ...] | None, ...]
"""The strides of each value that an operator returns; None for what is no tensor."""

_CONVOLUTIONS = {"convolution", "_convolution"}
_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


@functools.cache
def is_laid_out(op: str) -> bool:
    """Whether `as_on_cuda` may give another layout to what an operator such as `aten.convolution.default` makes."""
    return op.split(".")[1] in _CONVOLUTIONS


def as_on_cuda(op: str, read: Sequence[Any], result: Any) -> Any:
    """The result of `op`; that of a convolution as cuDNN gives it: channels_last where its input or its weight is, which a tensor
    without data, or on the CPU, does not always follow. `read`: the tensors among the arguments."""
    if not is_laid_out(op) or not isinstance(result, torch.Tensor) or result.dim() not in _LAST:
        return result
    last = _LAST[result.dim()]
    wanted = last if any(suggest_memory_format(t) is last for t in read[:2]) else torch.contiguous_format
    return result if result.is_contiguous(memory_format=wanted) else result.contiguous(memory_format=wanted)


def strides_of(values: Sequence[Any]) -> Strides:
    """Where the trace says that an operator's results lie."""
    return tuple(v.stride() if isinstance(v, torch.Tensor) else None for v in values)


def laid_out(values: tuple[Any, ...], wanted: Strides, read: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """`values` with new memory laid out as `wanted`. `read`: the arguments, whose views stay as they are."""
    found = []
    for value, strides in zip(values, wanted, strict=True):
        if isinstance(value, torch.Tensor) and strides is not None and value.stride() != strides:
            alike = all(n <= 1 or a == b for n, a, b in zip(value.shape, value.stride(), strides, strict=True))
            own = value.untyped_storage()._cdata not in {t.untyped_storage()._cdata for t in read}
            if not alike and own and value.numel():
                value = torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device).copy_(value)
        found.append(value)
    return tuple(found)
