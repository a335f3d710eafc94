"""An evaluation without a GPU: at the sizes that fit, at smaller ones where a candidate takes too long, and at longer ones where
the first could not show what the candidate does at full shape."""

from __future__ import annotations

from dataclasses import replace

from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.cpu_judge import AtFull, CpuJudge, Judged, TooLong
from rlkernel.evaluator.ended import Ended, compared_at
from rlkernel.evaluator.judging.noted import Open, noted
from rlkernel.evaluator.judging.undecided import Undecided, told, undecided
from rlkernel.evaluator.messages.oracle import Fits
from rlkernel.evaluator.processes.child import Child
from rlkernel.evaluator.second_looks.budget import MOST_WORK
from rlkernel.evaluator.second_looks.deciding import TIMES_SMALLER, SecondLooks
from rlkernel.evaluator.second_looks.looking import halvings_of, out_of_time
from rlkernel.evaluator.stages import Stages
from rlkernel.types import Evaluation, Problem


class CpuPath:
    """Judges one candidate at a time per oracle."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages
        self._judge = CpuJudge(stages)
        self._looks = SecondLooks(stages, self._judge)

    async def evaluate(self, oracle: Child, problem: Problem, code: str, clock: Clock) -> Evaluation:
        """Judge one candidate. Raises Ended, BrokenReference or EvaluatorFailed."""
        at_full = AtFull()
        fits, found = await self._first(oracle, problem, code, clock, at_full)
        fitted = replace(problem, source=fits.source)
        other: Evaluation | Undecided | None = out_of_time(found)
        if fits.sizes and other is None:
            other = await self._looks.after(oracle, fitted, code, clock, found, at_full, problem)
        if (note := noted()) is not None and isinstance(found, Judged) and found.evaluation.correct:
            halvings = halvings_of(found.short) if found.short else 0
            note.open = Open(fits.sizes, halvings, found.work * found.growth)
        if isinstance(other, Evaluation):
            return replace(other, seconds=clock.now)
        if isinstance(found, Ended):
            if other is not None:
                found.detail = undecided(found.detail, fits.sizes, other)
            with compared_at(fits.sizes):
                raise found
        return told(replace(found.evaluation, sizes=fits.sizes, seconds=clock.now), other)

    async def _first(
        self, oracle: Child, problem: Problem, code: str, clock: Clock, at_full: AtFull
    ) -> tuple[Fits, Judged | Ended]:  # fmt: skip
        """Judge at the sizes that fit, at smaller ones where the interpreter would take too long, and at the last ones in any
        case."""
        fits = await self.stages.fitted(oracle, problem, None)
        for smaller in range(1, TIMES_SMALLER + 1):
            try:
                fitted = replace(problem, source=fits.source)
                return fits, await self._judge.judge(oracle, fitted, code, clock, MOST_WORK, at_full)
            except Ended as end:
                return fits, end
            except TooLong:
                larger, fits = fits, await self.stages.fitted(oracle, problem, None, smaller)
            if fits.source == larger.source:
                break
        try:
            return fits, await self._judge.judge(oracle, replace(problem, source=fits.source), code, clock, None, at_full)
        except Ended as end:
            return fits, end
