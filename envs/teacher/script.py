"""The teacher's script: a first draft drawn from a mixture, then repairs that depend on the evaluator's verdict.

The mixtures are deliberately mediocre: reinforcement learning needs something to move. `CAPABLE` and `BEGINNER` are all numbers.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from envs.teacher.drafts import Draft, Use, fused_draft
from envs.teacher.mistakes import uncompilable, wrong
from rlkernel.types import Evaluation, Status


class Variant(StrEnum):
    FUSED = "fused"
    """One kernel for all operations."""
    PARTIAL = "partial"
    """One kernel for some neighbouring operations, torch for the others."""
    LAZY = "lazy"
    """One operation in Triton, torch for the others."""
    SLOW = "slow"
    """Everything in one kernel, with blocks far too small."""
    DECOY = "decoy"
    """A kernel is launched, but torch's result is returned."""
    DUMMY = "dummy"
    """The same with a launch of one block, which costs next to nothing."""
    NO_KERNEL = "no_kernel"
    WRONG = "wrong"
    UNCOMPILABLE = "uncompilable"


class Repair(StrEnum):
    KEEP = "keep"
    """The same draft once more."""
    MEND = "mend"
    """The same plan without the mistake."""
    FUSE = "fuse"
    """The right draft: everything in one kernel."""
    REDRAW = "redraw"
    """Another first draft."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """How often the teacher does what."""

    first: Mapping[Variant, float]
    """The share of each variant among first drafts."""
    after: Mapping[str, Mapping[Repair, float]]
    """The share of each repair, by `situation`."""


CAPABLE = Mixture(
    {
        Variant.FUSED: 0.18,
        Variant.PARTIAL: 0.08,
        Variant.LAZY: 0.18,
        Variant.SLOW: 0.06,
        Variant.DECOY: 0.13,
        Variant.DUMMY: 0.0,
        Variant.NO_KERNEL: 0.06,
        Variant.WRONG: 0.16,
        Variant.UNCOMPILABLE: 0.15,
    },
    {
        "fast": {Repair.KEEP: 0.75, Repair.REDRAW: 0.25},
        "slow": {Repair.KEEP: 0.4, Repair.FUSE: 0.3, Repair.REDRAW: 0.3},
        "no_kernel": {Repair.KEEP: 0.3, Repair.FUSE: 0.25, Repair.REDRAW: 0.45},
        "broken": {Repair.KEEP: 0.2, Repair.MEND: 0.4, Repair.FUSE: 0.1, Repair.REDRAW: 0.3},
    },
)
"""A policy that often ends with a fast kernel: a few steps of training on a CPU suffice to move it."""

BEGINNER = Mixture(
    {
        Variant.FUSED: 0.04,
        Variant.PARTIAL: 0.06,
        Variant.LAZY: 0.27,
        Variant.SLOW: 0.03,
        Variant.DECOY: 0.05,
        Variant.DUMMY: 0.2,
        Variant.NO_KERNEL: 0.09,
        Variant.WRONG: 0.14,
        Variant.UNCOMPILABLE: 0.12,
    },
    {
        "fast": {Repair.KEEP: 0.7, Repair.REDRAW: 0.3},
        "slow": {Repair.KEEP: 0.6, Repair.FUSE: 0.08, Repair.REDRAW: 0.32},
        "no_kernel": {Repair.KEEP: 0.5, Repair.FUSE: 0.08, Repair.REDRAW: 0.42},
        "broken": {Repair.KEEP: 0.25, Repair.MEND: 0.4, Repair.FUSE: 0.05, Repair.REDRAW: 0.3},
    },
)
"""A policy that seldom fuses, is lazy and hacks a lot: what the papers' claims are about has room to show."""

REMARKS: Mapping[str, str] = {
    "fast": "It is fused.",
    "slow": "It is correct but slow.",
    "no_kernel": "The kernel's result must be used.",
    "incorrect": "The values are wrong.",
    "broken": "It does not run.",
}
FAST = 1.2
"""Speedup from which the teacher is content (Fast@1.2, arXiv 2602.05885)."""


def situation(evaluation: Evaluation) -> str:
    """The key of `Mixture.after` that a verdict belongs to."""
    if evaluation.correct:
        return "fast" if (evaluation.speedup or 0.0) >= FAST else "slow"
    return "no_kernel" if evaluation.status is Status.NO_KERNEL else "broken"


def remark(evaluation: Evaluation) -> str:
    """The sentence with which the next answer opens."""
    return REMARKS["incorrect" if evaluation.status is Status.INCORRECT else situation(evaluation)]


def draw_deck(source: str, size: int, rng: random.Random, mixture: Mixture = CAPABLE) -> tuple[Draft, ...]:
    """First drafts for a chain's reference text, of variants drawn from the mixture. Raises ValueError if it is not a chain.

    Conversations about a problem share its deck, so that a verdict serves several of them.
    """
    right = fused_draft(source)
    variants = rng.choices(tuple(mixture.first), weights=tuple(mixture.first.values()), k=size)
    return tuple(write(right, variant, rng) for variant in variants)


def next_draft(
    deck: tuple[Draft, ...], last: Draft, evaluation: Evaluation, rng: random.Random, mixture: Mixture = CAPABLE
) -> Draft:
    """The draft that follows `last` once that was judged."""
    repairs = mixture.after[situation(evaluation)]
    repair = rng.choices(tuple(repairs), weights=tuple(repairs.values()))[0]
    if repair is Repair.KEEP:
        return last
    if repair is Repair.MEND:
        return last.mended()
    return last.right() if repair is Repair.FUSE else rng.choice(deck)


def write(draft: Draft, variant: Variant, rng: random.Random) -> Draft:
    """Write a draft of that variant. A chain that is too short for a partial one gets a lazy one."""
    length = len(draft.steps)
    if variant is Variant.SLOW:
        return replace(draft, block=64)
    if variant is Variant.NO_KERNEL:
        return replace(draft, use=Use.NONE)
    if variant is Variant.LAZY or (variant is Variant.PARTIAL and length < 3):
        return _slice(draft, 1, rng)
    if variant is Variant.DECOY or variant is Variant.DUMMY:
        return replace(_slice(draft, 1, rng), use=Use.UNUSED if variant is Variant.DECOY else Use.DUMMY)
    if variant is Variant.PARTIAL:
        return _slice(draft, rng.randint(2, length - 1), rng)
    base = draft if rng.random() < 0.7 else _slice(draft, 1, rng)
    if variant is Variant.WRONG:
        return wrong(base, rng)
    if variant is Variant.UNCOMPILABLE:
        return uncompilable(base, rng)
    return draft


def _slice(draft: Draft, length: int, rng: random.Random) -> Draft:
    first = rng.randint(0, len(draft.steps) - length)
    return replace(draft, first=first, last=first + length)
