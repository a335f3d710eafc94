"""Compares an output with several results that are all right, such as a reference's in float64 and with rounded operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from rlkernel.evaluator.judging.errors.comparison import Match, compare_tensor
from rlkernel.evaluator.judging.errors.own_error import CORES_CAP, CUT_FACTOR, ELEMENT_CAP, EXTREME_FACTOR, NEAREST_FACTOR
from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.evaluator.program.codes import equal_or_wrong, valued

AGREED = 0.5
"""The share of an output in which all sides agree where each element may be any side's. Where roundings decide more, such as
whether a long sum is odd, nearly every element is right by some side, and so would be an output that comes from nothing."""
USUAL = 0.95
"""The share of the elements in which sides agree that says what tf32 does."""
ALIKE = 0.1
"""The most by which sides differ that agree, relative to |element| + root mean square."""


def compare_with_any(
    found: torch.Tensor, sides: Sequence[torch.Tensor], *, allowed: Tolerance, overlapping: bool, where: str
) -> Match:
    """One output tensor against results that are all right, each element against the nearest: of two experts that a token's gate
    likes alike, one rounding chooses the first for this token, and another one the second for the next. Where the sides agree in
    too little, the output is one of them as a whole. A side of another shape than the output's, which values may decide, is none;
    the first one, which is exact, has that shape. The last one is what operands give that are cut off to tf32, those between
    them what rounded ones do. Where they agree, an element may miss by what tf32 does to it: a gate in float32 chooses for some
    token as no tf32 does, and its expert's product may be in tf32."""
    sides = [side for side in sides if side.shape == found.shape]
    alike = _alike(sides, allowed)

    def against(side: torch.Tensor, allowed: Tolerance = allowed) -> Match:
        return compare_tensor(found, side.to(found.dtype), side, allowed=allowed, overlapping=overlapping, where=where)

    if int(alike.sum()) / max(1, alike.numel()) < AGREED:
        matches = [against(sides[0])]
        matches += [match for side in sides[1:] if (match := against(side)).matches]
        return next((match for match in matches if match.matches), matches[0])
    nearest, least = sides[0], distance(found, sides[0])
    for side in sides[1:]:
        missed = distance(found, side)
        nearer = (missed < least) | (torch.isnan(least) & ~torch.isnan(missed))
        nearest, least = torch.where(nearer, side, nearest), torch.where(nearer, missed, least)
    return against(nearest, _by_cores(sides, alike, allowed))


def _alike(sides: Sequence[torch.Tensor], allowed: Tolerance) -> torch.Tensor:
    """The elements in which all sides are alike."""
    alike = torch.ones(sides[0].shape, dtype=torch.bool, device=sides[0].device)
    for side in sides[1:]:
        alike &= ~unlike(sides[0], side, min(allowed.element, ALIKE), allowed)
    return alike


def unlike(first: torch.Tensor, side: torch.Tensor, limit: float, allowed: Tolerance) -> torch.Tensor:
    """The elements in which two results differ by more than the `limit`, relative to |element| + root mean square."""
    values = valued(first)
    if equal_or_wrong(first.dtype):
        return distance(values, side) > 0
    return distance(values, side) > limit * _sizes(values, allowed)


def _by_cores(sides: Sequence[torch.Tensor], alike: torch.Tensor, allowed: Tolerance) -> Tolerance:
    """What is allowed where tf32 may be used besides, by what it does to the elements in which all sides are alike. The worst of
    these are left out, because a small element of another choice is alike, too."""
    first = valued(sides[0])
    ordinary = alike & torch.isfinite(first) & (first.abs() <= allowed.huge)
    count = int(ordinary.sum())
    if equal_or_wrong(sides[0].dtype) or not count:
        return allowed
    values, scale = first[ordinary].double(), _sizes(first, allowed)[ordinary].double().clamp_min(1e-30)
    norm = element = 0.0
    for place, side in enumerate(sides[1:], start=1):
        missed = distance(first, side)[ordinary].double()
        relative = missed / scale
        most = relative.kthvalue(max(1, int(USUAL * count))).values
        usual = relative <= most
        size = torch.linalg.vector_norm(values[usual]).clamp_min(1e-30)
        factor = CUT_FACTOR if place == len(sides) - 1 else NEAREST_FACTOR
        norm = max(norm, factor * float(torch.linalg.vector_norm(missed[usual]) / size))
        element = max(element, EXTREME_FACTOR * factor * float(most))
    norm, element = min(CORES_CAP, norm), min(ELEMENT_CAP, element)
    return replace(allowed, norm=max(allowed.norm, norm), element=max(allowed.element, element))


def _sizes(values: torch.Tensor, allowed: Tolerance) -> torch.Tensor:
    """What an element's error is held against: |element| + the root mean square of those that are not huge."""
    size = values.abs()
    ordinary = size[torch.isfinite(size) & (size <= allowed.huge)]
    rms = ordinary.square().mean().sqrt() if ordinary.numel() else size.new_zeros(())
    return size + rms


def distance(found: torch.Tensor, side: torch.Tensor) -> torch.Tensor:
    """How far each element is from a side's: 0 where both are infinite alike, or no numbers."""
    found, side = valued(found), valued(side)
    if equal_or_wrong(found.dtype):
        return (found != side).to(torch.float32)
    same = (found == side) | (torch.isnan(found) & torch.isnan(side))
    return torch.where(same, 0.0, (found - side).abs())
