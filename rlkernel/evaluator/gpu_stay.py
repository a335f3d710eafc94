"""A candidate's stay on a GPU: on the one that fewest wait for, under its lease, after the problem was studied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread

from rlkernel.evaluator import wire
from rlkernel.evaluator.cards.gpu_runner import GpuRunner, RunnerFailed, RunnerLost
from rlkernel.evaluator.cards.studies import Studies
from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.endings import Failed
from rlkernel.evaluator.messages.gpu import Evaluate, Judged, Known, Needed, Task
from rlkernel.evaluator.messages.oracle import Brief
from rlkernel.types import Problem, Status

_MAY_SAY = {Status.RUNTIME_ERROR, Status.OUT_OF_BOUNDS, Status.TIMEOUT, Status.CRASH}
"""Failures that a runner may report of a candidate."""

MOST_LOSSES = 16
"""Kernels of a candidate without which the rest may fail; each costs a process and a second. Of those without which it never
ends there are fewer, see `gpu.liveness`."""

DRAWS = 48
"""How many draws of inputs a stay may need, whose time is ours: one to lay out memory, up to two for each of six rounds, and two
for each trial of a long or slow forward, of which nine may be void. Rounds that show what no draw does come on top."""


QUICK_STEPS = 64
"""Steps of a candidate that are written in a millisecond, sooner than another thread begins; more are written there."""


def _further(known: Known) -> int:
    """How many rounds a stay has that show what no draw does."""
    return len(tuple(known.shown)) + known.outliers + len(known.mild)


@dataclass(frozen=True, slots=True)
class Stay:
    """What a candidate's stay has found, and where."""

    runner: GpuRunner
    known: Known
    """What was known of the problem there."""
    judged: Judged


class Stays:
    """Leads candidates to `runners`. `seconds`: how long a runner may be silent, besides the time that we draw inputs."""

    def __init__(self, runners: Sequence[GpuRunner], studies: Studies, seconds: float) -> None:
        self.runners = runners
        self._studies = studies
        self._seconds = seconds

    async def stay(self, problem: Problem, brief: Brief, task: Task, cubins: Mapping[str, bytes], clock: Clock) -> Stay:
        """Judge a candidate on the GPU that fewest wait for. `cubins`: the candidate's binaries by key.

        Raises Ended, BrokenReference, EvaluatorFailed, or RunnerFailed when no GPU is left."""
        body = wire.Body()
        spans = {key: body.add_bytes(data) for key, data in cubins.items()}

        async def question(known: Known) -> bytes:
            message = Evaluate(task, known, spans)
            if _steps(task) <= QUICK_STEPS:
                return codec.pack(message, body)
            return await anyio.to_thread.run_sync(codec.pack, message, body)

        while True:
            await self._studies.settled(problem)
            left = [runner for runner in self.runners if not runner.failed]
            runner = min(left or self.runners, key=lambda runner: runner.waiting)
            told = self._studies.known(runner, problem)
            ready = None if told is None else await question(told)  # before the lease, under which the card would wait for it
            try:
                async with runner.lease():
                    known = await self._studies.study(runner, problem, brief)
                    with clock.stage("gpu"):
                        seconds = self._seconds + (DRAWS + 2 * _further(known)) * known.draw_seconds
                        judged = await self._ask(runner, ready or await question(known), seconds)
            except RunnerFailed:
                if all(runner.failed for runner in self.runners):
                    raise
            else:
                if isinstance(judged, Judged):
                    return Stay(runner, known, judged)
                task = _knowing(task, judged)

    async def _ask(self, runner: GpuRunner, question: bytes, seconds: float) -> Judged | Needed:
        """The runner's facts about the candidate. Its failure, death or silence ends the evaluation: raises Ended."""
        try:
            answer: Judged | Needed | Failed = await runner.ask(question, seconds, Judged, Needed)
        except RunnerLost as lost:
            if lost.death is None:
                raise Ended(Status.TIMEOUT, f"the GPU was silent for more than {seconds:.3g} s") from None
            raise Ended(Status.CRASH, f"the process that drives the GPU {lost.death.describe()}") from None
        if isinstance(answer, Failed):
            raise Ended(answer.status if answer.status in _MAY_SAY else Status.CRASH, answer.detail)
        return answer


def _steps(task: Task) -> int:
    """How many steps a candidate has in both modes."""
    programs = [program for program in (task.program, task.other) if program is not None]
    return sum(len(program.once) + len(program.forward) for program in programs)


def _knowing(task: Task, found: Needed) -> Task:
    """The task for the next runner, which need not try what cost this one its process. Raises Ended after too many."""
    if found.function in task.live or task.losses >= MOST_LOSSES:
        raise Ended(Status.CRASH, f"forward fails on the GPU without any one of {task.losses} kernels and more")
    live = task.live | found.live | {found.function: True}
    return replace(task, live=live, losses=task.losses + 1, spins=task.spins + found.spun)
