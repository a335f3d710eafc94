"""What a pool says of its cards, and whose lease it takes. Runners and cards are played here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rlkernel.errors import EvaluatorFailed
from rlkernel.evaluator import pool
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.gpu_path import GpuPath
from rlkernel.interfaces import CardEvaluator
from rlkernel.types import Problem
from tests.evaluator.cards.played import PlayedRunner

REST: Any = (None, EvaluatorConfig(), None, [None], "cuda", None)
pytestmark = pytest.mark.anyio


def path_of(*runners: PlayedRunner) -> GpuPath:
    listed: Any = runners
    stages: Any = SimpleNamespace(config=EvaluatorConfig())
    return GpuPath(stages, listed, None)


async def test_drift_is_a_notice() -> None:
    path = path_of(PlayedRunner(0))
    opened = pool.Pool(path, *REST, notices=["cuda:0 is not idle"])
    assert opened.notices == ("cuda:0 is not idle",)
    path._times.drifts = 2
    assert opened.notices[1].startswith("2 references' times differ from the stored one by more than 3%")


async def test_a_lease_is_one_of_the_shared_card() -> None:
    card, other = PlayedRunner(1), PlayedRunner(0)
    opened = pool.Pool(path_of(other, card), *REST, shared="GPU-1")
    assert opened.shares
    async with opened.lease():
        assert (card.guest, other.guest) == (True, False)
    assert not card.guest


async def test_a_pool_is_an_evaluator_that_a_run_can_share_a_card_with() -> None:
    opened = pool.Pool(path_of(PlayedRunner(0)), *REST, shared="GPU-0")
    assert isinstance(opened, CardEvaluator)
    facts = opened.describe()
    assert (facts["class"], facts["device"], facts["jobs"], facts["takes_turns"]) == ("Pool", "cuda", 1, True)
    assert (facts["profile"], facts["limits"]["gpu_memory_bytes"]) == ("h200", 0)


class Failing:
    """A path on which every evaluation finds that its oracle has died."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def evaluate(self, oracle: Any, *rest: Any) -> Any:
        self.asked.append(oracle)
        raise EvaluatorFailed("the process that runs the reference was killed")


async def test_a_lane_whose_oracle_failed_gets_another_one() -> None:
    async def renew(dead: Any) -> Any:
        return f"after {dead}"

    path: Any = Failing()
    stages, config, cache, _, device, server = REST
    opened = pool.Pool(path, stages, config, cache, ["the first"], device, server, renew=renew)  # type: ignore[list-item]
    for _ in range(2):
        with pytest.raises(EvaluatorFailed):
            await opened.judge(Problem("mine/p", 1, "train", "x = 1"), "code")
    assert path.asked == ["the first", "after the first"]
