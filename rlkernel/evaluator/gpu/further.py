"""The rounds of a problem that follow the hardest one, to show what no draw does and what large inputs hide."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rlkernel.evaluator.gpu.kinds import Kind, at_usual_inputs
from rlkernel.evaluator.gpu.showing import found, shown_of
from rlkernel.evaluator.judging.inputs.stress import UNSCALED, varies
from rlkernel.evaluator.judging.references.hidden import unmissed
from rlkernel.evaluator.judging.references.reference_calls import call, constants, draw_seed, tensors_of
from rlkernel.evaluator.messages.judgement import Stress, Tolerance
from rlkernel.evaluator.program.schema import Program

if TYPE_CHECKING:
    from rlkernel.evaluator.gpu.measuring import Measuring, Seen
    from rlkernel.evaluator.gpu.problem import GpuProblem

SECONDS = 20.0
"""How long a study looks for such rounds; nothing is begun afterwards."""


def further_rounds(
    problem: GpuProblem, measuring: Measuring, usual: Seen, hardest: tuple[Kind, Seen], program: Program
) -> tuple[list[tuple[Kind, Seen]], bool]:  # fmt: skip
    """These rounds, as far as the reference bears them, and what it gives there; and whether time was short, so that there may be
    more. `program`: the reference's own trace."""
    until = time.monotonic() + SECONDS
    looked_for = shown_of(problem, program, problem.source, until)
    rounds = [(Kind(shown=one), seen) for one, seen in measuring.shown(usual, looked_for, until).items()]
    large = found(partial(measuring.with_outliers, usual), None)
    rounds += [] if large is None else [(Kind(outliers=True), large)]
    rounds += found(partial(_mild, problem, measuring, usual, *hardest), []) if time.monotonic() < until else []
    return rounds, time.monotonic() >= until


def _mild(problem: GpuProblem, measuring: Measuring, usual: Seen, hardest: Kind, hard: Seen) -> list[tuple[Kind, Seen]]:
    """The rounds at usual inputs and other constants, and what the reference gives there: one where inputs that never vary do in
    the hardest round beside larger ones, and one where all rounds so far hide a constant that it shows."""
    if not hardest.perturbed or hardest.stress in UNSCALED:
        return []
    unseen = _unseen(problem, hardest, measuring.limits(hard))
    varied = varies(problem.inputs(0), hardest.stress, hardest.places)
    rounds: list[tuple[Kind, Seen]] = []
    for stress in (*(Stress.VARIED,) * varied, Stress.NONE):
        if stress is Stress.NONE and not unseen:
            break
        kind = at_usual_inputs(stress, hardest.places)
        seen = found(partial(measuring.see, kind), None)
        if seen is None or not seen.bearable(usual) or (stress is Stress.VARIED and not seen.as_exact(usual)):
            continue
        shown = unseen - _unseen(problem, kind, measuring.limits(seen)) if unseen else unseen
        unseen -= shown
        if stress is Stress.VARIED or shown:
            rounds.append((kind, seen))
    return rounds


def _unseen(problem: GpuProblem, kind: Kind, limits: Sequence[Tolerance]) -> frozenset[str]:
    """The constants whose other values a round of this kind hardly shows."""
    init, seed = draw_seed(), draw_seed()
    build, inputs = partial(problem.model_for, kind, init), partial(problem.inputs, seed, kind)
    given = tensors_of(call(build(), inputs(), 0))
    usual = constants(problem.model(init), problem.reference.fixed)
    return unmissed(build, usual, inputs, 0, given, limits)
