"""`torch.unique` and its kin by operators that are told how many distinct values there are.

In a trace, which has no data, these stand in its place: a sort, a comparison of neighbours, and a running count, as torch has it
on a GPU. Where the operator itself is called, it is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

NumberOf = Callable[[torch.Tensor, Callable[[torch.Tensor], torch.Tensor]], int]
"""What a question gives of a tensor. May raise where nobody knows."""
Found = tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None
"""The distinct values, the place of each element among them, and how often each occurs; the latter two are empty unless wanted.
None where torch's operator stays."""
_DISTINCT: Any = torch.unique
_RUNS: Any = torch.unique_consecutive
MOST_COLUMNS = 64
"""The most numbers in a row of which distinct rows are looked for: one sort each."""


def _unique(number_of: NumberOf, tensor: torch.Tensor, sorted: bool = True, inverse: bool = False, counts: bool = False) -> Found:
    del sorted  # on a GPU they always are
    if not tensor.numel():
        return None
    length = number_of(tensor, lambda values: torch.tensor(_DISTINCT(values).numel()))
    rows, order = tensor.reshape(-1).sort()
    values, places, times = _runs(rows, length, order if inverse else None, counts)
    return values, places.reshape(tensor.shape) if inverse else places, times


def _unique_dim(
    number_of: NumberOf, tensor: torch.Tensor, dim: int, sorted: bool = True, inverse: bool = False, counts: bool = False
) -> Found:
    del sorted
    rows = _rows_along(tensor, dim)
    if not tensor.numel() or rows.shape[1] > MOST_COLUMNS:
        return None
    length = number_of(tensor, lambda values: torch.tensor(_DISTINCT(values, dim=dim).shape[dim]))
    order = rows[:, -1].argsort(stable=True)
    for column in reversed(rows[:, :-1].unbind(1)):
        order = order.index_select(0, column.index_select(0, order).argsort(stable=True))
    rows = rows.index_select(0, order)
    values, places, times = _runs(rows, length, order if inverse else None, counts)
    return _laid_along(values, tensor, dim), places, times


def _unique_consecutive(
    number_of: NumberOf, tensor: torch.Tensor, inverse: bool = False, counts: bool = False, dim: int | None = None
) -> Found:  # fmt: skip
    if not tensor.numel():
        return None
    if dim is not None:
        return _unique_dim_consecutive(number_of, tensor, dim, inverse, counts)
    length = number_of(tensor, lambda values: torch.tensor(_RUNS(values).numel()))
    rows = tensor.reshape(-1)
    order = torch.arange(rows.numel(), device=rows.device) if inverse else None
    values, places, times = _runs(rows, length, order, counts)
    return values, places.reshape(tensor.shape) if inverse else places, times


def _unique_dim_consecutive(
    number_of: NumberOf, tensor: torch.Tensor, dim: int, inverse: bool = False, counts: bool = False
) -> Found:  # fmt: skip
    if not tensor.numel():
        return None
    length = number_of(tensor, lambda values: torch.tensor(_RUNS(values, dim=dim).shape[dim]))
    rows = _rows_along(tensor, dim)
    order = torch.arange(rows.shape[0], device=rows.device) if inverse else None
    values, places, times = _runs(rows, length, order, counts)
    return _laid_along(values, tensor, dim), places, times


def _runs(
    rows: torch.Tensor, length: int, order: torch.Tensor | None, counts: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The first of each run of equal rows, or numbers, where equal ones stand side by side. order: where each row was before, if
    the place of each is wanted."""
    differ = rows[1:] != rows[:-1]
    differ = differ.any(1) if rows.dim() > 1 else differ
    first = torch.cat([differ.new_ones(1), differ])
    begins = torch.nonzero_static(first, size=length).squeeze(1)
    values, none = rows.index_select(0, begins), begins.new_empty(0)
    places = none if order is None else torch.empty_like(order).scatter_(0, order, first.cumsum(0) - 1)
    ends = torch.cat([begins[1:], begins.new_full((1,), rows.shape[0])]) if counts else none
    return values, places, ends - begins if counts else none


def _rows_along(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """What stands at each place of an axis, as a row."""
    return tensor.movedim(dim, 0).flatten(1) if tensor.dim() > 1 else tensor.unsqueeze(1)


def _laid_along(rows: torch.Tensor, tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """Distinct rows in the shape of the tensor that they are of."""
    return rows.reshape(-1, *tensor.movedim(dim, 0).shape[1:]).movedim(0, dim) if tensor.dim() > 1 else rows.squeeze(1)


DISTINCT: dict[str, Callable[..., Found]] = {
    "aten._unique2.default": _unique,
    "aten.unique_dim.default": _unique_dim,
    "aten.unique_consecutive.default": _unique_consecutive,
    "aten.unique_dim_consecutive.default": _unique_dim_consecutive,
}
"""Operator -> what it makes, from `number_of` and its arguments."""
