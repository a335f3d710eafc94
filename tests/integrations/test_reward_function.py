"""The evaluator from other people's loops and threads, with a scripted evaluator."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from algorithms.speed_reward import SpeedReward
from envs.kernel_env import KernelEnvironment
from envs.problems import load_suite
from rlkernel.errors import BrokenReference
from rlkernel.integrations.reward_function import RewardFunction, rows, text_of
from rlkernel.integrations.service import Service, open_service
from rlkernel.types import Evaluation, Problem, Status

PROBLEM = load_suite()[0]


@dataclass
class Judge:
    """Speedup is the code's last number; all that are asked together are in flight together."""

    together: int = 1
    asked: list[Problem] = field(default_factory=list)
    arrived: anyio.Event = field(default_factory=anyio.Event)

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        self.asked.append(problem)
        if len(self.asked) >= self.together:
            self.arrived.set()
        await self.arrived.wait()  # for ever, if the others only came one after the other
        if problem.source == "broken":
            raise BrokenReference(f"{problem.name}: no Model")
        if code is None:
            return Evaluation(Status.NO_CODE, "")
        return Evaluation(Status.CORRECT, "", speedup=float(code.split()[-1]))


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def service(judge: Judge) -> Iterator[Service]:
    with open_service(judge) as opened:
        yield opened


def said(number: float) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": f"```python\nclass ModelNew: ...  # {number}\n```"}]


def test_one_reward_per_completion_all_evaluated_at_once(judge: Judge, service: Service) -> None:
    judge.together = 3
    reward = RewardFunction(service, KernelEnvironment(), SpeedReward())
    completions = [said(1.0), [{"role": "assistant", "content": "no"}], said(3.0)]
    columns: dict[str, Any] = {"problem": ["p", "p", "q"], "reference": ["a", "a", "b"], "trainer_state": None}
    found = asyncio.run(reward([None] * 3, completions, **columns))
    assert found == [1.0, 0.0, 2.0]  # 0.5 + 0.5 * speedup
    assert sorted((p.name, p.source) for p in judge.asked) == [("p", "a"), ("p", "a"), ("q", "b")]
    assert reward.__name__ == "SpeedReward" and [e.status for e in reward.last][1] is Status.NO_CODE


def test_it_is_what_trl_takes_for_an_async_function(service: Service) -> None:
    from trl.trainer.utils import is_async_callable

    assert is_async_callable(RewardFunction(service, KernelEnvironment(), SpeedReward()))


def test_a_broken_reference_ends_the_training(service: Service) -> None:
    reward = RewardFunction(service, KernelEnvironment(), SpeedReward())
    with pytest.raises(BrokenReference, match="p: no Model"):
        asyncio.run(reward([None], [said(1.0)], problem=["p"], reference=["broken"]))


def test_threads_and_loops_share_one_evaluator(judge: Judge, service: Service) -> None:
    judge.together = 4
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda n: service.evaluate(PROBLEM, f"# {n}").speedup, (1, 2, 3, 4)))
    assert found == [1, 2, 3, 4]


def test_a_closed_service_says_so(judge: Judge) -> None:
    with open_service(judge) as service:
        pass
    with pytest.raises(RuntimeError):
        service.evaluate(PROBLEM, None)


def test_rows_have_the_prompt_and_the_problem() -> None:
    (row,) = rows([PROBLEM], KernelEnvironment())
    assert row["problem"] == PROBLEM.name and row["reference"] == PROBLEM.source
    assert row["prompt"] == [{"role": "user", "content": KernelEnvironment().prompt(PROBLEM)}]
    assert rows([PROBLEM], KernelEnvironment(), conversational=False)[0]["prompt"] == KernelEnvironment().prompt(PROBLEM)


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("plain", "plain"),
        ([{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}], "a"),
        ([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": None}], "a"),
        ([], ""),
    ],
)
def test_what_was_written(completion: Any, text: str) -> None:
    assert text_of(completion) == text
