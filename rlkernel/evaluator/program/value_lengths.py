"""Operators whose results are as long as values say: `x[mask]`, `torch.nonzero`, `torch.repeat_interleave`.

Where a length is known other operators stand in their place, which are told it: in a trace, which has no data, and on a GPU,
where the host would wait for it. Only references have such operators: a candidate's Program holds for all inputs of one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

_aten = torch.ops.aten
NumberOf = Callable[[torch.Tensor, Callable[[torch.Tensor], torch.Tensor]], int]
"""What a question gives of a tensor. May raise where nobody knows."""
MASKS = (torch.bool, torch.uint8)


def _nonzero(number_of: NumberOf, mask: torch.Tensor) -> torch.Tensor:
    return _aten.nonzero_static.default(mask, size=number_of(mask, torch.count_nonzero))  # type: ignore[no-any-return]


def _index(number_of: NumberOf, tensor: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
    if not any(_is_mask(index) for index in indices):
        return None
    return _aten.index.Tensor(tensor, _places(number_of, indices))  # type: ignore[no-any-return]


def _index_put(
    number_of: NumberOf, tensor: torch.Tensor, indices: Sequence[torch.Tensor | None], put: torch.Tensor, accumulate: bool = False
) -> torch.Tensor | None:
    if not any(_is_mask(index) for index in indices) or _fills(indices, put, accumulate):
        return None
    return _aten.index_put_.default(tensor, _places(number_of, indices), put, accumulate)  # type: ignore[no-any-return]


def _fills(indices: Sequence[torch.Tensor | None], put: torch.Tensor, accumulate: bool) -> bool:
    """Whether torch fills what one mask says with one number, which needs no length: not with a number in a GPU's memory."""
    return put.numel() == 1 and not put.is_cuda and not accumulate and sum(index is not None for index in indices) == 1


def _places(number_of: NumberOf, indices: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """A mask names as many axes as it has, and becomes an index along each."""
    places: list[torch.Tensor | None] = []
    for index in indices:
        places += _nonzero(number_of, index).unbind(1) if index is not None and _is_mask(index) else [index]
    return places


def _is_mask(index: torch.Tensor | None) -> bool:
    return index is not None and index.dtype in MASKS and index.dim() > 0


def _masked_select(number_of: NumberOf, tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor | None:
    tensor, mask = torch.broadcast_tensors(tensor, mask)  # type: ignore[no-untyped-call]
    return _index(number_of, tensor, [mask])


def _bincount(
    number_of: NumberOf, tensor: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0
) -> torch.Tensor | None:  # fmt: skip
    if minlength > 0 or not tensor.numel():
        return None
    return _aten.bincount.default(tensor, weights, number_of(tensor, torch.max) + 1)  # type: ignore[no-any-return]


def _repeat_interleave(number_of: NumberOf, repeats: torch.Tensor, *, output_size: int | None = None) -> torch.Tensor | None:
    if output_size is not None:
        return None
    return _aten.repeat_interleave.Tensor(repeats, output_size=number_of(repeats, torch.sum))  # type: ignore[no-any-return]


BY_VALUES: dict[str, Callable[..., torch.Tensor | None]] = {
    "aten.nonzero.default": _nonzero,
    "aten.index.Tensor": _index,
    "aten.index_put_.default": _index_put,
    "aten.masked_select.default": _masked_select,
    "aten.bincount.default": _bincount,
    "aten.repeat_interleave.Tensor": _repeat_interleave,
}
"""Operator -> what it makes, from `number_of` and its arguments; None where no value decides a length."""
