"""Compares an output with several results that are all right, such as a reference's in float64 and with rounded operands."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rlkernel.evaluator.judging.errors.comparison import Match, compare_tensor
from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.evaluator.program.codes import equal_or_wrong, valued

AGREED = 0.5
"""The share of an output in which all sides agree where each element may be any side's. Where roundings decide more, such as
whether a long sum is odd, nearly every element is right by some side, and so would be an output that comes from nothing."""
ALIKE = 0.1
"""The most by which sides differ that agree, relative to |element| + root mean square."""


def compare_with_any(
    found: torch.Tensor, sides: Sequence[torch.Tensor], *, allowed: Tolerance, overlapping: bool, where: str
) -> Match:
    """One output tensor against results that are all right, each element against the nearest: of two experts that a token's gate
    likes alike, one rounding chooses the first for this token, and another one the second for the next. Where the sides agree in
    too little, the output is one of them as a whole. A side of another shape than the output's, which values may decide, is none;
    the first one has that shape."""
    sides = [side for side in sides if side.shape == found.shape]

    def against(side: torch.Tensor) -> Match:
        return compare_tensor(found, side.to(found.dtype), side, allowed=allowed, overlapping=overlapping, where=where)

    if _agreed(sides, allowed) < AGREED:
        matches = [against(sides[0])]
        matches += [match for side in sides[1:] if (match := against(side)).matches]
        return next((match for match in matches if match.matches), matches[0])
    nearest, least = sides[0], _missed(found, sides[0])
    for side in sides[1:]:
        missed = _missed(found, side)
        nearer = (missed < least) | (torch.isnan(least) & ~torch.isnan(missed))
        nearest, least = torch.where(nearer, side, nearest), torch.where(nearer, missed, least)
    return against(nearest)


def _agreed(sides: Sequence[torch.Tensor], allowed: Tolerance) -> float:
    """The share of the elements in which all sides are alike."""
    first = valued(sides[0])
    if equal_or_wrong(sides[0].dtype):
        limit = torch.zeros((), device=first.device)
    else:
        size = first.abs()
        ordinary = size[torch.isfinite(size) & (size <= allowed.huge)]
        rms = ordinary.square().mean().sqrt() if ordinary.numel() else size.new_zeros(())
        limit = min(allowed.element, ALIKE) * (size + rms)
    alike = torch.ones(first.shape, dtype=torch.bool, device=first.device)
    for side in sides[1:]:
        alike &= _missed(first, side) <= limit
    return int(alike.sum()) / max(1, alike.numel())


def _missed(found: torch.Tensor, side: torch.Tensor) -> torch.Tensor:
    """How far each element is from a side's: 0 where both are infinite alike, or no numbers."""
    found, side = valued(found), valued(side)
    if equal_or_wrong(found.dtype):
        return (found != side).to(torch.float32)
    same = (found == side) | (torch.isnan(found) & torch.isnan(side))
    return torch.where(same, 0.0, (found - side).abs())
