"""What is measured of a problem once, in the problem's own time and not in a candidate's.

A study serves all equal cards of the machine: how exact an answer must be and what the reference does to its inputs are the same
on each. A time that candidates are compared with is measured on the very card: torch.compile's here, the reference's own beside
every candidate.
"""

from __future__ import annotations

from collections import defaultdict

import anyio

from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator.cards.gpu_runner import GpuRunner, RunnerLost
from rlkernel.evaluator.cards.kept_studies import KeptStudies
from rlkernel.evaluator.cards.kept_times import KeptTimes
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.endings import Broken, Failed
from rlkernel.evaluator.messages.gpu import CompiledTimes, Known, Study, TimeCompiled, Unstressed
from rlkernel.evaluator.messages.oracle import Brief
from rlkernel.types import Problem

COMPILED_SECONDS = 120.0
"""Wall clock that torch.compile and its timing may take."""


class Studies:
    """Studies each problem when it is first met on a kind of card."""

    def __init__(self, config: EvaluatorConfig, times: KeptTimes, kept: KeptStudies) -> None:
        self._config = config
        self._times = times
        self._kept = kept
        self._turns: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        """A problem's source -> who studies it now."""
        self._compiled: dict[tuple[str, str], float | None] = {}
        """(a GPU's UUID, a problem's source) -> the reference's time under torch.compile."""

    async def settled(self, problem: Problem) -> None:
        """Wait while the problem is studied, so that a card which could use the study serves others meanwhile."""
        async with self._turns[problem.source]:
            pass

    async def study(self, runner: GpuRunner, problem: Problem, brief: Brief) -> Known:
        """What is known of a problem on this kind of card, under the lease of one.

        Raises BrokenReference or EvaluatorFailed, one line that names the problem; RunnerFailed.
        """
        card = (runner.gpu.uuid, problem.source)
        if self._config.compiled and card not in self._compiled:
            self._compiled[card] = await self._time_compiled(runner, problem)
        if (known := self.known(runner, problem)) is not None:
            return known  # at once: the card waits for its next question
        async with self._turns[problem.source]:
            known = self.known(runner, problem)
            if known is None:
                known, whole = await self._measure(runner, problem, brief)
                self._kept.put(runner.gpu, problem, known, lasting=whole)
        return known

    def known(self, runner: GpuRunner, problem: Problem) -> Known | None:
        """What is known of a problem on this kind of card; None before it was studied."""
        return self._kept.get(runner.gpu, problem)

    def compiled_us(self, runner: GpuRunner, problem: Problem) -> float | None:
        """The reference's time under torch.compile; None if it was not asked for or does not compile."""
        return self._compiled.get((runner.gpu.uuid, problem.source))

    async def _measure(self, runner: GpuRunner, problem: Problem, brief: Brief) -> tuple[Known, bool]:
        """Ask for a study, and with fewer inputs that no author draws where these cost the runner; whether it has all."""
        who, limit = f"{problem.name}: the process that runs the reference on the GPU", self._config.limits.oracle_seconds
        replaced = brief.variants[1].replaced
        for stress, shown in ((True, True), (True, False), (False, False)):
            question = codec.pack(
                Study(problem.name, problem.source, brief.reference, self._config.precision, stress, shown, replaced)
            )  # fmt: skip
            answer: Known | Broken | Unstressed | Failed
            try:
                answer = await runner.ask(question, limit, Known, Broken, Unstressed)
            except RunnerLost as lost:
                if stress:
                    continue  # inputs that no author draws may have cost it
                what = f"was silent for more than {limit:g} s" if lost.death is None else lost.death.describe()
                raise EvaluatorFailed(f"{who} {what}") from lost
            if isinstance(answer, Known):
                return answer, stress and shown and not answer.hurried
            if isinstance(answer, Broken):
                raise BrokenReference(answer.why)
            if isinstance(answer, Failed):
                raise EvaluatorFailed(f"{who}: {answer.detail}")
        raise EvaluatorFailed(f"{who}: it lost the GPU three times")

    async def _time_compiled(self, runner: GpuRunner, problem: Problem) -> float | None:
        """The reference's time under torch.compile, from the store if it is there; None if it does not compile."""
        stored = await self._times.compiled_us(runner.gpu, problem)
        if stored is not None:
            return stored
        question = codec.pack(TimeCompiled(problem.name, problem.source, self._config.precision))
        answer = await runner.time_compiled(question, COMPILED_SECONDS)
        return answer.compiled_us if isinstance(answer, CompiledTimes) else None
