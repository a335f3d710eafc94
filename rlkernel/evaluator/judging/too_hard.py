"""When a round is too hard to say something of candidates: what the reference gives there, against what it gives usually.

A round at other inputs may be too hard: the reference gives NaN, errs by much, or roundings decide what it answers, so that two
right kernels have nothing in common. These are the rules by which such a round is left out, and a milder one is drawn. They are
asked of what was measured, by the path without a GPU (`drawing.py`) and by a card (`gpu/measuring.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from rlkernel.evaluator.judging.errors.own_error import REFERENCE_FACTOR, OwnError
from rlkernel.evaluator.judging.errors.tolerance import FLOOR
from rlkernel.evaluator.messages.judgement import Stress
from rlkernel.evaluator.program.codes import valued

MOST = 2.0**64
"""What float32 has a square of: what recurs and is not damped grows beyond it, long before it is infinite."""
LOOSE = 0.1
"""What may be allowed of an output's norm because its reference errs; above it a round tells little."""
SURER = 4.0
"""How many times as many whole numbers may be decided by roundings as usually, by chance."""
TIGHT = 0.25
"""The share of a floor up to which the reference's own error counts as little."""


def not_finite(outputs: Sequence[torch.Tensor]) -> tuple[bool, bool, bool]:
    """Whether an output holds NaN, whether one holds infinity, and whether one holds more than `MOST`, as a mask does that fills
    with the lowest number there is."""
    floats = [valued(t) for t in outputs if t.is_floating_point()]
    sizes = [float(t.abs().nan_to_num_(0.0, math.inf).amax()) for t in floats if t.numel()]
    largest = max(sizes, default=0.0)
    return any(bool(torch.isnan(t).any()) for t in floats), math.isinf(largest), largest > MOST


def bearable(
    found: tuple[bool, ...], errors: Sequence[OwnError], usually: tuple[bool, ...], usual_errors: Sequence[OwnError]
) -> bool:
    """Whether the reference is as finite as usually, and tf32 as exact as it must be, by what `not_finite` and `own_error` tell
    of its outputs at other inputs, and usually. Other draws are worse by chance, so that tf32 has twice the room here."""
    finite = all(now <= before for now, before in zip(found, usually, strict=True))
    return finite and all(now.with_cores(2.0).blurred <= before.blurred for now, before in zip(errors, usual_errors, strict=True))


def as_exact(errors: Sequence[OwnError], usual_errors: Sequence[OwnError]) -> bool:
    """Whether no output errs by so much more than usually that two right kernels may have nothing in common: what recurs grows
    with its inputs, and so does what is rounded. It is asked under stress alone. Without stress there is nothing milder to try,
    and usual errors say little: a branch behind a gate of zeros errs by nothing until the gate has another value."""
    pairs = zip(errors, usual_errors, strict=True)
    return not any(REFERENCE_FACTOR * now.norm > LOOSE and now.norm > 2.0 * usually.norm for now, usually in pairs)


def as_sure(now: float, usually: float) -> bool:
    """Whether about as many whole numbers are decided by roundings as usually, given the shares that are. At full shape there may
    be one among thousands in any draw.

    >>> as_sure(0.0, 0.0), as_sure(1 / 4096, 0.0), as_sure(2 / 4096, 1 / 4096), as_sure(0.2, 1 / 4096)
    (True, False, True, False)
    """
    return now <= SURER * usually


def as_tight(errors: Sequence[OwnError], usual_errors: Sequence[OwnError], dtypes: Sequence[torch.dtype]) -> bool:
    """Whether the reference errs by little more than usually, so that bounds are hardly wider: rows at the edge of what it bears
    may not excuse the others, and an honest kernel, which may take another way, may err by more than the reference. Example: the
    variance in one pass of what a sigmoid makes of tiny rows, 0.5 and a little. Tf32 may err by no more than usually: a softmax
    of scores far below zero amplifies what it rounds, and one such error says little of another."""
    rows = zip(errors, usual_errors, dtypes, strict=True)
    floors = ((now, before, FLOOR.get(dtype, FLOOR[torch.float32])) for now, before, dtype in rows)
    return all(
        now.cores <= before.cores and REFERENCE_FACTOR * now.norm <= max(TIGHT * floor, 2.0 * REFERENCE_FACTOR * before.norm)
        for now, before, floor in floors
    )


def resolved(errors: Sequence[OwnError]) -> bool:
    """Whether float32 itself is as exact as ever at inputs that lead out of half precision's range."""
    return all(REFERENCE_FACTOR * error.norm < FLOOR[torch.float32] for error in errors)


def hardest(found: Sequence[Stress]) -> tuple[Stress, ...]:
    """What is tried of the stresses that were found, the hardest first: with rows at the edge, then as they are, then with inputs
    that are less large, and without any stress at last."""
    less = (Stress.LESS, Stress.LEAST) if Stress.SCALED in found else ()
    return (*(Stress.EXTREME,) * (Stress.UNEVEN in found), *found, *less, Stress.NONE)
