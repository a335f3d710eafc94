"""Real numbers that are made of whole ones which roundings decide, as a product is of activations that are rounded to 8 bits.

Of a million quotients about one lies so near a half that whoever multiplies by the reciprocal rounds it the other way, and a
whole row of the product is then another one. So an answer that misses is compared once more, each element with the nearest of
what the reference gives with other roundings (`wavering.py`). Where these are all alike, nothing more is allowed.

In half precision what only moves with the roundings moves by percents. So an answer counts where it is quite another one, and all
else is as near to the exact result as ever, by its own size.

Numbers that are equal without any rounding are meant: of 12 / 8 > 1.5, nobody may say that it is true. They are told by float64,
in which no other numbers change places. Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from rlkernel.evaluator.judging.errors.comparison import Match, compare_tensor
from rlkernel.evaluator.judging.errors.own_error import errors
from rlkernel.evaluator.judging.errors.several_right import distance, unlike
from rlkernel.evaluator.judging.errors.wavering import CALLS, EXACT_CALLS, UNITS, OtherRoundings
from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.evaluator.program.codes import valued

MOST_JUMPED = 0.25
"""The share of an output that may be other numbers with other roundings. Where it is more, nearly every element would be right by
one of so many answers."""

DRIFT = 4 * UNITS
"""Units in the last place, of several operators behind each other, by which an element moves that does not jump."""
LEAST = 2 * CALLS
"""The calls after which no more are made where none has jumped: numbers lose in the first of them, and gain in some others."""


def right_by_some(
    found: torch.Tensor, exact: torch.Tensor, place: int, roundings: OtherRoundings,
    *, allowed: Tolerance, overlapping: bool, where: str,
) -> Match | None:  # fmt: skip
    """The comparison of an output of real numbers with the nearest of the `exact` result and what the reference gives with other
    `roundings`, once it matches; None where it does not. place: of the output among all."""
    limit = max(allowed.norm, DRIFT * torch.finfo(found.dtype).eps)

    def matched(nearest: torch.Tensor) -> Match | None:
        match = compare_tensor(found, nearest.to(found.dtype), nearest, allowed=allowed, overlapping=overlapping, where=where)
        return match if match.matches and _as_near(found, exact, ~jumped, allowed) else None

    if int(unlike(exact, found, allowed.element, allowed).sum()) > MOST_JUMPED * exact.numel():  # none may be excused in so many
        return None
    nearest, least = exact, distance(found, exact)
    jumped = torch.zeros(exact.shape, dtype=torch.bool, device=exact.device)
    for number, turn in enumerate(roundings.turns()):
        if place >= len(turn) or turn[place].shape != exact.shape:
            return None
        side = turn[place].to(exact.dtype)
        jumps = unlike(exact, side, limit, allowed)
        jumped |= jumps
        if int(jumped.sum()) > MOST_JUMPED * jumped.numel() or (number + 1 >= LEAST and not bool(jumped.any())):
            return None
        by = distance(found, side)
        nearer = (by < least) & jumps
        if not bool(nearer.any()):
            continue
        nearest, least = torch.where(nearer, side, nearest), torch.where(nearer, by, least)
        if matched(nearest) is not None:
            equal = _equal_numbers(roundings.in_float64(), place, limit, allowed)
            return None if equal is None else matched(torch.where(equal, exact, nearest))
    return None


def _as_near(found: torch.Tensor, exact: torch.Tensor, among: torch.Tensor, allowed: Tolerance) -> bool:
    """Whether the elements `among` all are as near to the exact result as is allowed, by their own size."""
    given, target = valued(found), valued(exact)
    among = among & torch.isfinite(target) & torch.isfinite(given)
    given, target = given[among], target[among]
    if target.is_complex():
        given, target = torch.view_as_real(given), torch.view_as_real(target)
    return not target.numel() or errors(given, target)[0] <= allowed.norm


def _equal_numbers(
    sides: Iterable[Sequence[torch.Tensor]], place: int, limit: float, allowed: Tolerance
) -> torch.Tensor | None:  # fmt: skip
    """The elements that are decided by numbers which are equal without any rounding; None where float64 does not tell."""
    outputs = [side[place] for side in sides if place < len(side)]
    if len(outputs) <= len(EXACT_CALLS) or any(one.shape != outputs[0].shape for one in outputs):
        return None
    return torch.stack([unlike(outputs[0], side, limit, allowed) for side in outputs[1:]]).any(0)
