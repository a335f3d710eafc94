"""What a pool says of its cards, and whose lease it takes. Runners and cards are played here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from rlkernel.errors import EvaluatorFailed
from rlkernel.evaluator import pool
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.cards.baselines import BaselineStore
from rlkernel.evaluator.cards.gpus import Gpu, GpuUnavailable
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
    return GpuPath(stages, listed, BaselineStore(None))


async def test_cards_that_are_not_idle_are_told_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait_idle(card: Gpu, own_pids: Collection[int]) -> str | None:
        assert not own_pids
        if card.index == 2:
            raise GpuUnavailable("cuda:2 does not answer")
        return None if card.index == 0 else "process 7 holds 30 MiB"

    monkeypatch.setattr(gpus, "wait_idle", wait_idle)
    assert await pool._not_idle([PlayedRunner(number).gpu for number in (2, 0, 1)], None) == [
        "cuda:2 (NVIDIA H200) is not idle, so times may be wrong: cuda:2 does not answer",
        "cuda:1 (NVIDIA H200) is not idle, so times may be wrong: process 7 holds 30 MiB",
    ]


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


def test_what_a_process_has_forked_is_its_own() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
        assert child.pid in pool._children(os.getpid())
        child.communicate()
    assert child.pid not in pool._children(os.getpid())
    assert pool._children(2**22 + 1) == set()
