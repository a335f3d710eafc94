"""Seconds of things that overlap, on a clock that the test moves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from rlkernel import busy
from rlkernel.busy import Busy
from rlkernel.training import meter
from rlkernel.training.meter import MeteredEvaluator, Meters, overlap
from rlkernel.types import Evaluation, Problem, Status

pytestmark = pytest.mark.anyio


@dataclass
class Clock:
    now: float = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(busy, "time", clock)
    monkeypatch.setattr(meter, "time", clock)
    return clock


@dataclass
class Policy:
    busy: Busy = field(default_factory=Busy)
    tokens: int = 0


class Judge:
    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        return Evaluation(Status.NO_CODE, "")


async def test_overlap_is_the_time_of_one_beside_any_other(clock: Clock) -> None:
    one, two, three = Busy(), Busy(), Busy()
    both = overlap(one, (two, three))
    #            0    1    2    3    4    5    6
    # one             -------------------
    # two        ----------
    # three                    -----------------
    # both            -----    ----------            1 + 2
    two.begin()
    clock.now = 1
    one.begin()
    clock.now = 2
    two.end()
    clock.now = 3
    three.begin()
    clock.now = 4
    assert both.seconds == 2  # still going on
    clock.now = 5
    one.end()
    clock.now = 6
    three.end()
    assert (both.seconds, one.seconds, two.seconds, three.seconds) == (3, 4, 2, 3)


async def test_a_lap_is_what_was_added_since_the_one_before(clock: Clock) -> None:
    policy: Any = Policy()
    evaluator = MeteredEvaluator(Judge(), Busy())
    waited = (1.0, 2.0)
    meters = Meters(policy, evaluator, lambda: waited)
    meters.lap()
    with meters.rollout():
        with policy.busy(), evaluator.busy():
            clock.now += 2
            policy.tokens += 100
        with evaluator.busy():  # nobody else has work
            await evaluator.evaluate(Problem("p", 1, "train", ""), None)
            clock.now += 3
    with meters.training():
        clock.now += 5
    waited = (1.5, 4.0)
    lap = meters.lap()
    assert {key: value for key, value in lap.items() if not key.startswith("memory")} == {
        "seconds_wall": 10,
        "seconds_rollout": 5,
        "seconds_training": 5,
        "seconds_generation": 2,
        "seconds_evaluation": 5,
        "seconds_evaluation_hidden": 2,
        "seconds_gpu_wait_evaluation": 0.5,
        "seconds_gpu_wait_policy": 2.0,
        "sampled_tokens_per_second": 50,
        "evaluations_per_second": 0.2,
    }
    assert lap["memory_gpu_gib"] is None
    idle = meters.lap()
    assert (idle["seconds_wall"], idle["seconds_evaluation"], idle["evaluations_per_second"]) == (0, 0, None)


async def test_without_a_gpu_nobody_waits_for_one() -> None:
    policy: Any = Policy()
    lap = Meters(policy, MeteredEvaluator(Judge(), Busy())).lap()
    assert (lap["seconds_gpu_wait_evaluation"], lap["seconds_gpu_wait_policy"]) == (None, None)
