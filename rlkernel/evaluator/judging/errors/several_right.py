"""Compares an output with several results that are all right, such as a reference's in float64 and with rounded operands."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rlkernel.evaluator.judging.errors.comparison import Match, compare_tensor
from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.evaluator.program.codes import equal_or_wrong, valued


def compare_with_any(
    found: torch.Tensor, sides: Sequence[torch.Tensor], *, allowed: Tolerance, overlapping: bool, where: str
) -> Match:
    """One output tensor against results that are all right, each element against the nearest: of two experts that a token's gate
    likes alike, one rounding chooses the first for this token, and another one the second for the next. All sides have the
    output's shape."""
    nearest = sides[0]
    for side in sides[1:]:
        nearer = found == side if equal_or_wrong(found.dtype) else _missed(found, side) < _missed(found, nearest)
        nearest = torch.where(nearer, side, nearest)
    return compare_tensor(found, nearest.to(found.dtype), nearest, allowed=allowed, overlapping=overlapping, where=where)


def _missed(found: torch.Tensor, side: torch.Tensor) -> torch.Tensor:
    return (valued(found) - valued(side)).abs()
