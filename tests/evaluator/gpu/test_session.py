"""A stay on a GPU as the pool sees it; runners and cards are played here: which GPU, what is studied, what is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator import gpu_path, pool, wire
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.cards.baselines import BaselineStore
from rlkernel.evaluator.cards.gpu_runner import RunnerFailed, RunnerLost
from rlkernel.evaluator.cards.gpus import Gpu, GpuUnavailable, Reading
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.gpu_path import GpuPath
from rlkernel.evaluator.processes.fork_server import ChildDied
from rlkernel.evaluator.stages import Clock
from rlkernel.types import Problem

RELU = Problem("mine/relu", 1, "train", "import torch\n")
KNOWN = {"allowed": {"plain": [1e-6]}, "changes_inputs": False, "finite": True, "rows": [{"op": "aten.relu", "us": 3.0}]}
READING = Reading(
    time=0.0, sm_mhz=1980, memory_mhz=3201, temperature_c=30, power_w=75.0, throttle=(), used_bytes=0, free_bytes=139 << 30,
    processes=(), utilisation=0,
)  # fmt: skip
pytestmark = pytest.mark.anyio


class Runner:
    """Gives `answers` in order. waiting: as if so many candidates queued."""

    def __init__(self, number: int, answers: Sequence[Any] = (), *, failed: bool = False, waiting: int = 0) -> None:
        self.gpu = Gpu(number, f"GPU-{number}", "NVIDIA H200", 140 << 30, "580.1")
        self.failed, self.waiting = failed, waiting
        self.fails_in_lease = False
        self.asked: list[tuple[dict[str, Any], float]] = []
        self._answers = list(answers)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        if self.failed or self.fails_in_lease:
            self.failed = True
            raise RunnerFailed(f"GPU-{self.gpu.index}")
        yield

    async def ask(self, message: bytes, seconds: float) -> tuple[dict[str, Any], bytes]:
        header, _ = wire.sizes(message[: wire.PREFIX.size])
        self.asked.append((wire.parse(message[wire.PREFIX.size : wire.PREFIX.size + header]), seconds))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer, b""


def path_of(*runners: Runner, tf32: bool = False) -> GpuPath:
    listed: Any = runners
    stages: Any = SimpleNamespace(config=EvaluatorConfig(tf32=tf32))
    return GpuPath(stages, listed, BaselineStore(None))


async def stay(path: GpuPath) -> tuple[Any, dict[str, Any]]:
    return await path._on_any(RELU, {"steps": []}, {"do": "evaluate", "name": RELU.name}, {}, Clock())


async def test_a_gpu_that_was_given_up_is_not_chosen_though_nobody_waits_for_it() -> None:
    failed, busy = Runner(0, failed=True), Runner(1, [{"known": KNOWN}, {"matches": True}], waiting=7)
    runner, found = await stay(path_of(failed, busy))
    assert runner is busy
    assert found == {"matches": True}


async def test_a_gpu_that_is_given_up_while_a_candidate_waits_passes_it_on() -> None:
    failing, other = Runner(0), Runner(1, [{"known": KNOWN}, {"matches": True}], waiting=7)
    failing.fails_in_lease = True
    assert (await stay(path_of(failing, other)))[0] is other
    with pytest.raises(RunnerFailed, match="GPU-0"):
        await stay(path_of(failing, Runner(1, failed=True)))


async def test_a_problem_is_studied_once_in_its_own_time_and_the_candidate_is_told_what_is_known() -> None:
    runner = Runner(0, [{"known": KNOWN}, {"matches": True}, {"matches": False}])
    path = path_of(runner, tf32=True)
    await stay(path)
    await stay(path)
    (study, study_seconds), (first, seconds), (second, _) = runner.asked
    assert study == {
        "do": "study", "name": RELU.name, "source": RELU.source, "reference": {"steps": []}, "tf32": True, "stress": True,
    }  # fmt: skip
    assert (study_seconds, seconds) == (120, 10.0)
    assert first["known"] == second["known"] == KNOWN
    assert "reference" not in first


async def test_a_study_that_loses_the_gpu_under_stress_is_repeated_without() -> None:
    runner = Runner(0, [{"retry": "plain", "lost": True}, {"known": KNOWN}, {"matches": True}])
    await stay(path_of(runner))
    assert [question.get("stress") for question, _ in runner.asked] == [True, False, None]


@pytest.mark.parametrize(
    ("answers", "error", "line"),
    [
        ([{"broken": "mine/relu: no"}], BrokenReference, "^mine/relu: no$"),
        ([{"retry": "plain"}, {"broken": "mine/relu: no", "lost": True}], BrokenReference, "^mine/relu: no$"),
        ([{"retry": "plain"}, {"retry": "plain"}], EvaluatorFailed, "^mine/relu: .* on the GPU: it lost the GPU twice$"),
        ([RunnerLost(None)], EvaluatorFailed, "^mine/relu: the process that runs .* was silent for more than 120 s$"),
        ([RunnerLost(ChildDied(None, 9))], EvaluatorFailed, "^mine/relu: the process that runs .* was killed by SIGKILL$"),
        ([{"status": "crash", "detail": "internal error"}], EvaluatorFailed, "^mine/relu: .*: internal error$"),
    ],
)
async def test_a_study_without_an_answer_names_the_problem(answers: list[Any], error: type[Exception], line: str) -> None:
    with pytest.raises(error, match=line):
        await stay(path_of(Runner(0, answers)))


def timed(us: float) -> dict[str, Any]:
    speedup = {
        "reference_us": us, "reference_low_us": us - 1, "reference_high_us": us + 1, "candidate_us": 50.0, "low": 1.9,
        "high": 2.1, "trials": 9,
    }  # fmt: skip
    return {"speedup": speedup, "host_us": 20.0}


async def test_times_are_stored_once_and_drift_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_path, "read", lambda gpu: READING)
    runner: Any = Runner(0)
    path = path_of(runner)
    for us in (100.0, 100.5, 110.0):
        times = await path._times(runner, RELU, timed(us))
        assert (times.reference_us, times.trials) == (us, 9)
    place = await path._place(runner)
    assert place is not None
    assert [row.eager_us for row in path.baselines.history(RELU, place)] == [100.0, 110.0]
    assert path.drifts == 1


async def test_a_card_that_does_not_tell_its_state_costs_the_store_and_not_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(gpu: Gpu) -> Reading:
        raise GpuUnavailable("cuda:0 does not answer")

    monkeypatch.setattr(gpu_path, "read", lost)
    runner: Any = Runner(0)
    path = path_of(runner)
    assert (await path._times(runner, RELU, timed(100.0))).candidate_us == 50.0
    assert len(path.baselines) == 0


async def test_cards_that_are_not_idle_are_told_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait_idle(card: Gpu, own_pids: Collection[int]) -> str | None:
        assert not own_pids
        if card.index == 2:
            raise GpuUnavailable("cuda:2 does not answer")
        return None if card.index == 0 else "process 7 holds 30 MiB"

    monkeypatch.setattr(gpus, "wait_idle", wait_idle)
    assert await pool._not_idle([Runner(number).gpu for number in (2, 0, 1)], None) == [
        "cuda:2 (NVIDIA H200) is not idle, so times may be wrong: cuda:2 does not answer",
        "cuda:1 (NVIDIA H200) is not idle, so times may be wrong: process 7 holds 30 MiB",
    ]


async def test_drift_is_a_notice() -> None:
    path = path_of(Runner(0))
    rest: Any = (EvaluatorConfig(), None, [None], "cuda", None)
    opened = pool.Pool(path, *rest, notices=["cuda:0 is not idle"])
    assert opened.notices == ("cuda:0 is not idle",)
    path.drifts = 2
    assert opened.notices[1].startswith("2 references' times differ from the stored one by more than 3%")


class SharedRunner(Runner):
    held = False

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        self.held = True
        try:
            yield
        finally:
            self.held = False


async def test_a_turn_is_one_on_the_shared_card() -> None:
    card, other = SharedRunner(1), SharedRunner(0)
    rest: Any = (EvaluatorConfig(), None, [None], "cuda", None)
    opened = pool.Pool(path_of(other, card), *rest, shared="GPU-1")
    assert opened.shares
    async with opened.turn():
        assert (card.held, other.held) == (True, False)
    assert not card.held
