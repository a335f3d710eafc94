"""Indices of which one is never named.

Of `zeros(S).scatter_reduce(0, segments, x, "amax", include_self=False)` with 64 rows for each segment, no segment is ever empty,
and at smaller sizes one is in a draw of thirty: whoever leaves -inf there is right or wrong by chance. So where what meets is
added up, all rows of some indices belong to the ones below them in a round of its own. What is in order stays so, no index is
larger than any that is drawn, and what is empty may not be all that there is. Where another input says how many rows each index
has, or where these end, indices stay: kernels may go by that. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rlkernel.evaluator.judging.inputs.fixed import WHOLE
from rlkernel.evaluator.judging.references.reference_calls import mapped_at
from rlkernel.evaluator.messages.judgement import Emptied

EACH = 4
"""The number of indices of which one is never named."""
EMPTY = "indices of which some are never named"
"""What stands behind a miss in such a round."""


def emptied(inputs: list[Any], what: Emptied, seed: int) -> list[Any]:
    """The arguments of forward with indices of which some are never named; which ones comes from `seed`."""
    return mapped_at(inputs, what.place, lambda tensor: torch.empty_like(tensor).copy_(_emptied(tensor, seed)))


def _emptied(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """The indices, some of which are the next smaller ones that there are.

    >>> _emptied(torch.tensor([0, 0, 1, 2, 2, 3, 5, 5]), 2).tolist()
    [0, 0, 1, 2, 2, 2, 5, 5]
    """
    named, which = torch.unique(tensor, return_inverse=True)
    first = 1 + seed % (EACH - 1)  # below the smallest one there is none
    left_out = torch.arange(named.numel(), device=tensor.device) % EACH == first
    made: torch.Tensor = named[which - left_out[which].long()]
    return made


def may_be_empty(tensor: torch.Tensor, given: Sequence[torch.Tensor]) -> bool:
    """Whether indices meet, so that one may be left out, there are enough of them, and nothing else that is `given` says how many
    rows each of them has."""
    if not EACH <= len(torch.unique(tensor)) < tensor.numel():
        return False
    return not any(_counts(other, tensor) for other in given if other is not tensor and other.dtype in WHOLE and other.numel())


def _counts(other: torch.Tensor, indices: torch.Tensor) -> bool:
    """Whether whole numbers may say how many rows each index has, or where these end: they add up to the number of rows, or end
    with it."""
    rows = {indices.numel(), *indices.shape}
    return int(other.sum()) in rows or int(other.max()) in rows
