"""Real numbers that are made of whole ones which roundings decide, as a product is of activations that are rounded to 8 bits.

Of a million quotients about one lies so near a half that whoever multiplies by the reciprocal rounds it the other way, and a
whole row of the product is then another one. So an answer that misses is compared once more, each element with the nearest of
what the reference gives with other roundings (`wavering.py`). Where these are all alike, nothing more is allowed. Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from rlkernel.evaluator.judging.errors.comparison import Match, compare_tensor
from rlkernel.evaluator.judging.errors.several_right import distance, unlike
from rlkernel.evaluator.judging.errors.wavering import CALLS
from rlkernel.evaluator.messages.judgement import Tolerance

MOST_JUMPED = 0.25
"""The share of an output that may be other numbers with other roundings. Where it is more, nearly every element would be right by
one of so many answers."""

FAR = 4.0
"""In bounds of the norm, how far an element is from the exact result that another rounding must have made."""
LEAST = 2 * CALLS
"""The calls after which no more are made where none has jumped: numbers lose in the first of them, and gain in some others."""


def right_by_some(
    found: torch.Tensor, exact: torch.Tensor, place: int, turns: Iterable[Sequence[torch.Tensor]], *,
    allowed: Tolerance, overlapping: bool, where: str,
) -> Match | None:  # fmt: skip
    """The comparison of an output of real numbers with the nearest of the `exact` result and what the reference gives in the
    `turns`, once it matches; None where it does not, and, before any turn is taken, where too much of it is wrong. place: of the
    output among all."""
    if int(unlike(exact, found, FAR * allowed.norm, allowed).sum()) > MOST_JUMPED * exact.numel():
        return None
    nearest, least = exact, distance(found, exact)
    jumped = torch.zeros(exact.shape, dtype=torch.bool, device=exact.device)
    for number, turn in enumerate(turns):
        if place >= len(turn) or turn[place].shape != exact.shape:
            return None
        side = turn[place].to(exact.dtype)
        jumped |= unlike(exact, side, allowed.norm, allowed)
        if int(jumped.sum()) > MOST_JUMPED * jumped.numel() or (number + 1 >= LEAST and not bool(jumped.any())):
            return None
        by = distance(found, side)
        nearer = by < least
        if not bool(nearer.any()):
            continue
        nearest, least = torch.where(nearer, side, nearest), torch.where(nearer, by, least)
        match = compare_tensor(found, nearest.to(found.dtype), nearest, allowed=allowed, overlapping=overlapping, where=where)
        if match.matches:
            return match
    return None
