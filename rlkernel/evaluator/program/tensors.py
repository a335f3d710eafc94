"""Tensors in the structures that functions take and return, and what they look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rlkernel.evaluator.program.schema import TensorSpec


def flatten(value: Any, found: list[torch.Tensor]) -> Any:
    """An output's structure with {"tensor": index} for tensors, which are collected in order."""
    if isinstance(value, torch.Tensor):
        found.append(value)
        return {"tensor": len(found) - 1}
    if isinstance(value, (list, tuple)):
        return [flatten(item, found) for item in value]
    if isinstance(value, dict):
        return {"dict": [[name_of(key), flatten(item, found)] for key, item in value.items()]}
    return value


def name_of(key: object) -> str:
    """A key of a dict that forward returns, as a Program names it: a key that is no string by its type and what it prints.

    >>> name_of("mean"), name_of(0), name_of(("a", 0))
    ('mean', 'int 0', "tuple ('a', 0)")
    """
    return key if isinstance(key, str) else f"{type(key).__name__} {key!r}"


def meta_tensors(specs: Sequence[TensorSpec]) -> list[torch.Tensor]:
    """Tensor specifications as meta tensors."""
    return [torch.empty_strided(s.shape, s.stride, dtype=getattr(torch, s.dtype), device="meta") for s in specs]


def extent(size: Sequence[int], stride: Sequence[int]) -> int:
    """Return the number of elements from the first to the last one of a strided tensor, both included."""
    return 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))


def overlapping(tensor: torch.Tensor) -> bool:
    """Return whether elements of a tensor share memory, as those of an expanded tensor and of windows by `unfold` do.

    Along each axis, from the shortest stride to the longest, a step must lead behind all that the shorter ones reach. Strides
    that interleave without meeting, such as (2, 3) for 2 x 2 elements, count as shared: no operator makes them.
    """
    reached = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and tensor.numel():
            if stride <= reached:
                return True
            reached += (size - 1) * stride
    return False


def overwrite(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Copy values into a tensor of their shape. Of an expanded tensor, whose elements along an axis are one in memory, the first
    one's value is taken."""
    for axis, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[axis] > 1:
            tensor, values = tensor.narrow(axis, 0, 1), values.narrow(axis, 0, 1)
    tensor.copy_(values)


def laid_as(values: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Values that lie in memory as a tensor of their shape does: every second column of a wider one, or one row for all. What is
    computed of such a tensor lies densely, and kernels are given the strides of what was drawn."""
    if values.shape != tensor.shape or values.layout is not torch.strided or values.stride() == tensor.stride():
        return values
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=values.dtype, device=values.device)
    overwrite(made, values)
    return made


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in memory of their own, and as far from one another there."""
    return laid_as(tensor.clone(memory_format=torch.preserve_format), tensor)


def lent(tensor: torch.Tensor, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether a tensor lies in the memory of one of `inputs`, e.g. a transposed view."""
    first, end = _span(tensor)
    return any(first < after and before < end for before, after in map(_span, inputs))


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses from the first element to behind the last one; (0, 0) without elements."""
    if not tensor.numel():
        return 0, 0
    return tensor.data_ptr(), tensor.data_ptr() + extent(tensor.size(), tensor.stride()) * tensor.itemsize
