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
        return {"dict": [[key, flatten(item, found)] for key, item in value.items()]}
    return value


def meta_tensors(specs: Sequence[TensorSpec]) -> list[torch.Tensor]:
    """Tensor specifications as meta tensors."""
    return [torch.empty_strided(s.shape, s.stride, dtype=getattr(torch, s.dtype), device="meta") for s in specs]


def extent(size: Sequence[int], stride: Sequence[int]) -> int:
    """Return the number of elements from the first to the last one of a strided tensor, both included."""
    return 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))


def overlapping(tensor: torch.Tensor) -> bool:
    """Elements that share memory, e.g. an expanded tensor."""
    return any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def lent(tensor: torch.Tensor, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether a tensor lies in the memory of one of `inputs`, e.g. a transposed view."""
    first, end = _span(tensor)
    return any(first < after and before < end for before, after in map(_span, inputs))


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses from the first element to behind the last one; (0, 0) without elements."""
    if not tensor.numel():
        return 0, 0
    return tensor.data_ptr(), tensor.data_ptr() + extent(tensor.size(), tensor.stride()) * tensor.itemsize
