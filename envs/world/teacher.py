"""The teacher's script: a first draft drawn from a mixture, then moves that depend on the verdict and read the feedback.

Risk grows with ambition: a draft with one operator in Triton is right nine times of ten, one with everything fused and tuned
three times. The moves help with a probability that leaves most of the gain to be learned. `BEGINNER` is all numbers.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from envs.teacher.script import situation
from envs.world.drafts import Draft
from envs.world.mistakes import draw_slips
from envs.world.ops import Kind
from envs.world.schedule import TORCH, Schedule, Stage, cuts, draw, draw_stage, forms, usual
from envs.world.task import Task
from envs.world.write.module import Use, stage_names
from rlkernel.types import Evaluation, Status

NEAR = 1.5
"""Times of the floor up to which a tile is called good."""
MISTAKES = (0.7, 0.25, 0.05)
"""The shares of one, two and three mistakes among drafts that have any."""


class Variant(StrEnum):
    """A kind of draft, from the timid to the bold, and two hacks."""

    LAZY = "lazy"
    """One elementwise operation in Triton, or the last operation where none is, torch for the others."""
    ONE = "one"
    """The operator that is not elementwise in Triton, torch for the others; in a chain, the first two operations."""
    PARTIAL = "partial"
    """Some kernels that fuse, some work left to torch."""
    FUSED = "fused"
    """As few kernels as there can be, with the usual knobs."""
    TUNED = "tuned"
    """As few kernels as there can be, with knobs of its own."""
    DECOY = "decoy"
    """A kernel is launched, but torch's result is returned."""
    NO_KERNEL = "no_kernel"
    """torch alone."""


RISK: Mapping[Variant, float] = {
    Variant.LAZY: 0.06,
    Variant.ONE: 0.12,
    Variant.PARTIAL: 0.33,
    Variant.FUSED: 0.5,
    Variant.TUNED: 0.73,
    Variant.DECOY: 0.0,
    Variant.NO_KERNEL: 0.0,
}
"""The probability that a draft carries mistakes. Some mistakes do no harm, so a little more is right than that."""


class Move(StrEnum):
    """What follows a verdict."""

    KEEP = "keep"
    """The same draft once more."""
    MEND = "mend"
    """The same plan without one of its mistakes."""
    USE = "use"
    """The kernels of a hack, now with their results used."""
    FUSE = "fuse"
    """Two neighbours, drawn among those that one kernel can do, become one; without any, a draft of fewest kernels follows."""
    RETILE = "retile"
    """Other knobs for the kernel that takes the most time; where torch takes it, for a kernel that is drawn."""
    REDRAW = "redraw"
    """Another first draft."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """How often the teacher does what."""

    first: Mapping[Variant, float]
    """The share of each variant among first drafts."""
    after: Mapping[str, Mapping[Move, float]]
    """The share of each move, by `situation`."""


BEGINNER = Mixture(
    {
        Variant.LAZY: 0.24,
        Variant.ONE: 0.2,
        Variant.PARTIAL: 0.16,
        Variant.FUSED: 0.1,
        Variant.TUNED: 0.1,
        Variant.DECOY: 0.12,
        Variant.NO_KERNEL: 0.08,
    },
    {
        "fast": {Move.KEEP: 0.25, Move.RETILE: 0.35, Move.FUSE: 0.1, Move.REDRAW: 0.3},
        "slow": {Move.KEEP: 0.12, Move.RETILE: 0.2, Move.FUSE: 0.22, Move.REDRAW: 0.46},
        "no_kernel": {Move.KEEP: 0.15, Move.USE: 0.3, Move.REDRAW: 0.55},
        "broken": {Move.KEEP: 0.12, Move.MEND: 0.4, Move.REDRAW: 0.48},
    },
)
"""A policy that is timid, hacks, and seldom writes a fast kernel, but knows every schedule."""


def remark(task: Task, evaluation: Evaluation) -> str:
    """The sentence with which the next answer opens: what the feedback says, read."""
    if evaluation.status is Status.NO_KERNEL:
        return "The kernel's result must be used."
    if evaluation.status is Status.INCORRECT:
        return "The values are wrong."
    if not evaluation.correct:
        return f"It fails: {str(evaluation.status).replace('_', ' ')}."
    times = (evaluation.candidate_us or 0.0) / task.floor_us()
    distance = "near" if times < NEAR else "about twice" if times < 3.0 else "far from"
    return f"It is {distance} the floor, and {costliest(evaluation)} takes the most time."


def costliest(evaluation: Evaluation) -> str:
    """The step that takes the most time: `torch`, or the name of a kernel."""
    shares = [(fact.share, fact.kernel) for fact in evaluation.launches] + [(fact.share, "torch") for fact in evaluation.ops]
    return max(shares, default=(0.0, "torch"))[1]


def first_draft(task: Task, mixture: Mixture, rng: random.Random) -> Draft:
    """A first draft of a variant drawn from the mixture."""
    variant = rng.choices(tuple(mixture.first), weights=tuple(mixture.first.values()))[0]
    return write(task, variant, rng)


def write(task: Task, variant: Variant, rng: random.Random) -> Draft:
    """A draft of that variant, with its risk of mistakes."""
    schedule = schedule_of(task, variant, rng)
    if variant is Variant.NO_KERNEL:
        return Draft(task, schedule, use=Use.NONE)
    if variant is Variant.DECOY:
        return Draft(task, schedule, use=Use.UNUSED)
    return with_risk(Draft(task, schedule), RISK[variant], rng)


def with_risk(draft: Draft, risk: float, rng: random.Random) -> Draft:
    """The draft, with mistakes at that probability."""
    if rng.random() >= risk:
        return draft
    count = rng.choices((1, 2, 3), weights=MISTAKES)[0]
    return replace(draft, slips=draw_slips(draft.task, draft.schedule, count, rng))


def schedule_of(task: Task, variant: Variant, rng: random.Random) -> Schedule:
    """A schedule of that variant."""
    every = list(cuts(task))
    if variant in (Variant.FUSED, Variant.TUNED):
        fewest = rng.choice([cut for cut in every if len(cut) == len(every[0])])
        if variant is Variant.TUNED:
            return draw(task, rng, fewest)
        return tuple(usual(task, first, last, rng.choice(forms(task, first, last))) for first, last in fewest)
    if variant is Variant.PARTIAL:
        return _with_a_kernel(task, draw(task, rng, rng.choice(every), torch_share=0.3), rng)
    return _one_kernel(task, _alone(task, variant, rng), rng)


def _alone(task: Task, variant: Variant, rng: random.Random) -> tuple[int, int]:
    """The run of steps that a timid draft writes in Triton."""
    elements = [k for k, step in enumerate(task.steps) if step.op.kind is Kind.ELEMENT]
    core = task.core
    if core is None:
        return (0, 2) if variant is Variant.ONE else (k := rng.choice(elements), k + 1)
    if variant is Variant.ONE:
        return core, core + 1
    k = rng.choice(elements) if elements else len(task.steps) - 1
    return k, k + 1


def _one_kernel(task: Task, run: tuple[int, int], rng: random.Random) -> Schedule:
    first, last = run
    form = rng.choice(forms(task, first, last))
    kernel = usual(task, first, last, form) if rng.random() < 0.7 else draw_stage(task, first, last, form, rng)
    before = (Stage(0, first),) if first else ()
    return (*before, kernel, *((Stage(last, len(task.steps)),) if last < len(task.steps) else ()))


def _with_a_kernel(task: Task, schedule: Schedule, rng: random.Random) -> Schedule:
    """The schedule, with one stage in Triton if it has none."""
    if any(stage.form != TORCH for stage in schedule):
        return schedule
    at = rng.randrange(len(schedule))
    first, last = schedule[at].first, schedule[at].last
    kernel = draw_stage(task, first, last, rng.choice(forms(task, first, last)), rng)
    return (*schedule[:at], kernel, *schedule[at + 1 :])


def next_draft(last: Draft, evaluation: Evaluation, rng: random.Random, mixture: Mixture = BEGINNER) -> Draft:
    """The draft that follows `last` once that was judged."""
    moves = mixture.after[situation(evaluation)]
    move = rng.choices(tuple(moves), weights=tuple(moves.values()))[0]
    if move is Move.MEND and last.slips:
        kept = rng.sample(last.slips, len(last.slips) - 1)
        return replace(last, slips=tuple(kept))
    if move is Move.USE and last.use is Use.UNUSED:
        return with_risk(replace(last, use=Use.LIVE), RISK[Variant.ONE], rng)
    if move is Move.FUSE:
        return with_risk(Draft(last.task, fused(last, rng)), RISK[Variant.PARTIAL], rng)
    if move is Move.RETILE and last.use is Use.LIVE:
        return with_risk(Draft(last.task, retiled(last, evaluation, rng)), RISK[Variant.ONE], rng)
    return last if move is Move.KEEP else first_draft(last.task, mixture, rng)


def fused(draft: Draft, rng: random.Random) -> Schedule:
    """The schedule with two neighbours as one kernel, drawn among those that one kernel can do, whatever time they take; else a
    schedule with fewest kernels."""
    at = list(range(len(draft.schedule) - 1))
    rng.shuffle(at)
    for k in at:
        one, other = draft.schedule[k : k + 2]
        run = (one.first, other.last)
        if found := forms(draft.task, *run):
            joined = usual(draft.task, *run, rng.choice(found))
            return (*draft.schedule[:k], joined, *draft.schedule[k + 2 :])
    return schedule_of(draft.task, Variant.FUSED, rng)


def retiled(draft: Draft, evaluation: Evaluation, rng: random.Random) -> Schedule:
    """The schedule with other knobs, or another form, for the kernel that takes the most time; for a kernel that is drawn where
    the costliest step is torch's."""
    kernels = [k for k, stage in enumerate(draft.schedule) if stage.form != TORCH]
    names = costliest(evaluation).removesuffix("_kernel")
    told = [k for k in kernels if "_".join(stage_names(draft.task, draft.schedule[k])).startswith(names)]
    k = rng.choice(told or kernels)
    stage = draft.schedule[k]
    form = stage.form if rng.random() < 0.6 else rng.choice(forms(draft.task, stage.first, stage.last))
    return (*draft.schedule[:k], draw_stage(draft.task, stage.first, stage.last, form, rng), *draft.schedule[k + 1 :])
