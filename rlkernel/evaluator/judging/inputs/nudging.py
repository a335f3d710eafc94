"""Inputs in float64, moved by what the rounding of their own dtype may have done: what such a move changes in an answer is
nobody's error.

It is somebody's where an output has a finer dtype than an input, as the sums of bfloat16 numbers in float32 have: these numbers
are exact, and whoever rounds to their dtype what is made of them drops what the output would hold. There a move of these says
nothing; inputs beside them that are as fine as the output move.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
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


def is_finer(output: torch.Tensor, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether an output's dtype resolves more than that of one of the inputs."""
    return holds_numbers(output) and any(_step(output) < _step(tensor) for tensor in inputs if holds_numbers(tensor))


def is_finest(output: torch.Tensor, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether an output's dtype resolves more than that of every input."""
    return holds_numbers(output) and all(_step(output) < _step(tensor) for tensor in inputs if holds_numbers(tensor))


def _step(tensor: torch.Tensor) -> float:
    return torch.finfo(tensor.dtype).eps


def nudged(
    inputs: list[Any], edges: Sequence[Edge] = (), output: torch.dtype | None = None, meant: Sequence[float] = (),
    held: Sequence[int] = (),
) -> list[Any]:  # fmt: skip
    """Inputs in float64, moved by their own rounding, but for what stays, see `nudging`."""
    change = nudging(edges, output, meant, held)
    return [mapped(x, change) for x in inputs]


def nudging(
    edges: Sequence[Edge] = (), output: torch.dtype | None = None, meant: Sequence[float] = (), held: Sequence[int] = ()
) -> Callable[[torch.Tensor], torch.Tensor]:
    """What moves the inputs by their own rounding, one tensor of them after the other. Rows of `edges` stay as they are: what
    their rounding would do says nothing of the others, which have the same bounds. So do inputs that are coarser than an
    `output`, numbers that are `meant` as they are, and the inputs at the places `held`: beside a bound the answer is another
    one."""
    places, known = itertools.count(), {edge.place: edge for edge in edges}
    coarsest = math.inf if output is None else torch.finfo(output).eps

    def change(tensor: torch.Tensor) -> torch.Tensor:
        edge = known.get(place := next(places))
        if not holds_numbers(tensor):
            return tensor
        moved = nudge(tensor) if _step(tensor) <= coarsest and place not in held else tensor.double()
        for number in meant:
            moved = torch.where(tensor == number, number, moved)
        return moved if edge is None else with_rows_of(moved, tensor, edge)

    return change
