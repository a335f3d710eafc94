"""Inputs in float64, moved by what the rounding of their own dtype may have done: what such a move changes in an answer is
nobody's error."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from rlkernel.evaluator.judging.inputs.edges import with_rows_of
from rlkernel.evaluator.judging.references.reference_calls import mapped
from rlkernel.evaluator.messages.judgement import Edge
from rlkernel.evaluator.program.codes import holds_numbers


def nudge(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor in float64, moved by up to half of its dtype's resolution, relative: what its rounding may have done.
    Whole numbers and codes stay."""
    if not holds_numbers(tensor):
        return tensor
    half = 0.5 * torch.finfo(tensor.dtype).eps
    factor = torch.empty(tensor.shape, dtype=torch.float64, device=tensor.device).uniform_(1.0 - half, 1.0 + half)
    return factor.mul_(tensor)


def nudged(inputs: list[Any], edges: Sequence[Edge] = ()) -> list[Any]:
    """Inputs in float64, moved by their own rounding. Rows of `edges` stay as they are: what their rounding would do says nothing
    of the others, which have the same bounds."""
    places, known = itertools.count(), {edge.place: edge for edge in edges}

    def change(tensor: torch.Tensor) -> torch.Tensor:
        moved, edge = nudge(tensor), known.get(next(places))
        return moved if edge is None else with_rows_of(moved, tensor, edge)

    return [mapped(x, change) for x in inputs]
