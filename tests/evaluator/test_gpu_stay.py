"""A candidate's stay on a GPU as the pool sees it: where it is, what is told, what failures mean. Runners are played here."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from rlkernel.evaluator.cards.baselines import BaselineStore
from rlkernel.evaluator.cards.gpu_runner import RunnerFailed, RunnerLost
from rlkernel.evaluator.cards.kept_studies import KeptStudies
from rlkernel.evaluator.cards.kept_times import KeptTimes
from rlkernel.evaluator.cards.studies import Studies
from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.gpu_stay import QUICK_STEPS, Stay, Stays
from rlkernel.evaluator.messages.endings import Failed
from rlkernel.evaluator.messages.gpu import Evaluate, Needed, Study, Tables, Task
from rlkernel.evaluator.messages.judgement import Plant, Shown
from rlkernel.evaluator.processes.child import ChildDied
from rlkernel.evaluator.program import encoding
from rlkernel.evaluator.program.schema import Literal, Program, Step
from rlkernel.evaluator.wire import Span
from rlkernel.types import Precision, Status
from tests.evaluator.cards.played import BRIEF, KNOWN, RELU, WRONG, PlayedRunner

NOTHING = Program((), (), (), {}, (), (), None)
TASK = Task(RELU.name, RELU.source, False, Precision.TF32, 2.0, NOTHING, None, Tables({}, {}))
pytestmark = pytest.mark.anyio


def stays(*runners: PlayedRunner) -> Stays:
    listed: Any = runners
    config = EvaluatorConfig(precision=Precision.TF32)
    times = KeptTimes(BaselineStore(None), precision=config.precision)
    return Stays(listed, Studies(config, times, KeptStudies(None, precision=config.precision)), 10.0)


async def stay(those: Stays) -> Stay:
    return await those.stay(RELU, BRIEF, TASK, {"key": b"cubin"}, Clock())


async def test_a_candidate_is_written_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Program of 16,384 steps takes half a second."""
    threads: list[int] = []
    real = encoding.step_to_json

    def noted(step: Step, *others: Any) -> Any:
        threads.append(threading.get_ident())
        return real(step, *others)

    monkeypatch.setattr(encoding, "step_to_json", noted)
    steps = (Literal(0, "float32", (), "AAAAAA=="),) * (QUICK_STEPS + 1)
    task = replace(TASK, program=replace(NOTHING, forward=steps))
    await stays(PlayedRunner(0, [KNOWN, WRONG])).stay(RELU, BRIEF, task, {}, Clock())
    assert threads and threading.get_ident() not in threads


async def test_a_gpu_that_was_given_up_is_not_chosen_though_nobody_waits_for_it() -> None:
    failed, busy = PlayedRunner(0, failed=True), PlayedRunner(1, [KNOWN, WRONG], waiting=7)
    found = await stay(stays(failed, busy))
    runner: Any = found.runner
    assert runner is busy
    assert (found.known, found.judged) == (KNOWN, WRONG)


async def test_a_gpu_that_is_given_up_while_a_candidate_waits_passes_it_on() -> None:
    failing, other = PlayedRunner(0), PlayedRunner(1, [KNOWN, WRONG], waiting=7)
    failing.fails_in_lease = True
    runner: Any = (await stay(stays(failing, other))).runner
    assert runner is other
    with pytest.raises(RunnerFailed, match="GPU-0"):
        await stay(stays(failing, PlayedRunner(1, failed=True)))


async def test_a_problem_is_studied_once_in_its_own_time_and_the_candidate_is_told_what_is_known() -> None:
    runner = PlayedRunner(0, [KNOWN, WRONG, WRONG])
    those = stays(runner)
    await stay(those)
    await stay(those)
    assert runner.asked == [
        (Study(RELU.name, RELU.source, {"steps": []}, precision=Precision.TF32, stress=True, shown=True), 120),
        (Evaluate(TASK, KNOWN, {"key": Span(0, 5)}), 10.0),
        (Evaluate(TASK, KNOWN, {"key": Span(0, 5)}), 10.0),
    ]


async def test_the_time_that_we_draw_inputs_is_no_silence_of_the_gpu() -> None:
    known = replace(KNOWN, draw_seconds=2.0)  # a hundred million numbers by numpy
    runner = PlayedRunner(0, [known, WRONG, RunnerLost(None)])
    those = stays(runner)
    assert (await stay(those)).judged == WRONG
    assert runner.asked[1] == (Evaluate(TASK, known, {"key": Span(0, 5)}), 10.0 + 48 * 2.0)
    shows = replace(known, shown=Shown((Plant(0, (1.0,)),)), outliers=True)
    runner = PlayedRunner(0, [shows, WRONG])
    assert (await stay(stays(runner))).judged == WRONG
    assert runner.asked[1][1] == 10.0 + (48 + 2 * 2) * 2.0
    runner = PlayedRunner(0, [known, WRONG, RunnerLost(None)])
    those = stays(runner)
    assert (await stay(those)).judged == WRONG
    with pytest.raises(Ended, match="silent for more than 106 s"):
        await stay(those)


@pytest.mark.parametrize(
    ("answer", "status", "line"),
    [
        (Failed(Status.OUT_OF_BOUNDS, "far away", lost=True), Status.OUT_OF_BOUNDS, "far away"),
        (Failed(Status.CORRECT, "not its to give"), Status.CRASH, "not its to give"),
        (RunnerLost(None), Status.TIMEOUT, "the GPU was silent for more than 10 s"),
        (RunnerLost(ChildDied(None, 11)), Status.CRASH, "the process that drives the GPU was killed by SIGSEGV"),
    ],
)
async def test_a_stay_without_facts_is_a_verdict(answer: Any, status: Status, line: str) -> None:
    with pytest.raises(Ended) as ended:
        await stay(stays(PlayedRunner(0, [KNOWN, answer])))
    assert (ended.value.status, ended.value.detail) == (status, line)


async def test_what_a_lost_runner_has_found_is_told_to_the_next_one() -> None:
    faulted, spun = Needed(3, {5: False}, False, lost=True), Needed(1, {2: True}, True, lost=True)
    runner = PlayedRunner(0, [KNOWN, faulted, spun, WRONG])
    assert (await stay(stays(runner))).judged == WRONG
    told = [(one.task.live, one.task.losses, one.task.spins) for one, _ in runner.asked if isinstance(one, Evaluate)]
    assert told == [({}, 0, 0), ({5: False, 3: True}, 1, 0), ({5: False, 3: True, 2: True, 1: True}, 2, 1)]


async def test_a_runner_that_tells_the_same_twice_ends_the_stay() -> None:
    same = Needed(3, {}, False, lost=True)
    with pytest.raises(Ended, match="without any one of 1 kernels") as ended:
        await stay(stays(PlayedRunner(0, [KNOWN, same, same])))
    assert ended.value.status is Status.CRASH


async def test_a_candidate_costs_a_bounded_number_of_runners() -> None:
    losses = [Needed(function, {}, False, lost=True) for function in range(30)]
    runner = PlayedRunner(0, [KNOWN, *losses])
    with pytest.raises(Ended, match="without any one of 16 kernels"):
        await stay(stays(runner))
    assert sum(isinstance(one, Evaluate) for one, _ in runner.asked) == 17


async def test_who_waits_for_a_study_holds_no_card() -> None:
    leased: list[int] = []
    go_on = anyio.Event()

    class Watched(PlayedRunner):
        @asynccontextmanager
        async def lease(self) -> AsyncIterator[None]:
            leased.append(self.gpu.index)
            self.waiting += 1
            async with super().lease():
                yield

        async def ask(self, question: bytes, seconds: float, *answers: type[Any]) -> Any:
            await go_on.wait()
            return await super().ask(question, seconds, *answers)

    those = stays(Watched(0, [KNOWN, WRONG]), Watched(1, [WRONG]))
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(stay, those)
            await anyio.wait_all_tasks_blocked()
        assert leased == [0]
        go_on.set()
    assert leased == [0, 1]
