"""What needs no evaluation, and one evaluation at a time of each candidate. The evaluation itself is played here."""

from __future__ import annotations

import anyio
import pytest

from rlkernel.errors import EvaluatorFailed
from rlkernel.evaluator.cache import ResultCache
from rlkernel.evaluator.caching import CachingEvaluator
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.types import Evaluation, Precision, Problem, Status

PROBLEM = Problem("mine/p", 1, "train", "x = 1")
pytestmark = pytest.mark.anyio


class Played(CachingEvaluator):
    """Judges when `go` is set; `judged` has the codes in order. The first judgement of `fails` raises."""

    def __init__(self, config: EvaluatorConfig | None = None, fails: str = "") -> None:
        super().__init__(ResultCache(None), "cpu", config or EvaluatorConfig())
        self.go = anyio.Event()
        self.judged: list[str] = []
        self.fails = fails

    async def judge(self, problem: Problem, code: str) -> Evaluation:
        self.judged.append(code)
        await self.go.wait()
        if code == self.fails:
            self.fails = ""
            raise EvaluatorFailed("ours")
        return Evaluation(Status.CORRECT, code)


async def test_no_code_is_not_judged() -> None:
    played = Played()
    assert (await played.evaluate(PROBLEM, None)).status is Status.NO_CODE
    assert (played.judged, played.hits, played.misses) == ([], 0, 0)


async def test_the_longest_code_is_counted_in_bytes() -> None:
    played = Played(EvaluatorConfig(limits=Limits(code_bytes=4)))
    played.go.set()
    assert (await played.evaluate(PROBLEM, "éé")).correct  # 2 + 2 bytes
    refused = await played.evaluate(PROBLEM, "ééx")
    assert (refused.status, refused.detail) == (Status.INVALID, "the code is longer than 4 bytes")
    assert played.judged == ["éé"]


async def test_who_asks_meanwhile_waits_for_the_one_answer() -> None:
    played = Played()
    found: list[Evaluation] = []

    async def one(code: str) -> None:
        found.append(await played.evaluate(PROBLEM, code))

    async with anyio.create_task_group() as tasks:
        for code in ("same", "same", "other", "same"):
            tasks.start_soon(one, code)
        await anyio.wait_all_tasks_blocked()
        assert played.judged == ["same", "other"]
        played.go.set()
    assert sorted((result.detail, result.cached) for result in found) == [
        ("other", False), ("same", False), ("same", True), ("same", True),
    ]  # fmt: skip
    assert (played.misses, played.hits) == (2, 2)


async def test_who_waited_for_a_failure_judges_for_itself() -> None:
    played = Played(fails="same")
    ends: list[str] = []

    async def one() -> None:
        try:
            ends.append((await played.evaluate(PROBLEM, "same")).detail)
        except EvaluatorFailed as error:
            ends.append(str(error))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        tasks.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        played.go.set()
    assert ends == ["ours", "same"]
    assert (played.judged, played.misses) == (["same", "same"], 1)


async def test_who_waited_for_what_was_cancelled_judges_for_itself() -> None:
    played = Played()
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as first:
            first.start_soon(played.evaluate, PROBLEM, "same")
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(played.evaluate, PROBLEM, "same")
            await anyio.wait_all_tasks_blocked()
            assert played.judged == ["same"]
            first.cancel_scope.cancel()
        played.go.set()
    assert (played.judged, played.misses) == (["same", "same"], 1)


async def test_another_problem_or_configuration_is_another_result() -> None:
    played = [Played(EvaluatorConfig(precision=precision)) for precision in Precision]
    for one in played:
        one.cache = played[0].cache
        one.go.set()
        await one.evaluate(PROBLEM, "code")
        await one.evaluate(Problem("mine/q", 1, "train", "x = 2"), "code")
    assert (len(played[0].cache), [one.misses for one in played]) == (6, [2, 2, 2])
