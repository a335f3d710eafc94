"""The evaluator from other people's loops and threads, with a scripted evaluator."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from envs.problems import load_suite
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import BrokenReference, UsageError
from rlkernel.integrations.reward_function import RewardFunction, rows, text_of
from rlkernel.integrations.service import Service, open_service
from rlkernel.types import Evaluation, Status
from tests.integrations.scripted_judge import Judge

PROBLEM = load_suite()[0]


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


def test_without_an_event_loop_it_gives_the_same(judge: Judge, service: Service) -> None:
    judge.together = 2
    reward = RewardFunction(service, KernelEnvironment(), SpeedReward())
    columns: dict[str, Any] = {"problem": ["p", "q"], "reference": ["a", "b"], "trainer_state": None}
    assert reward.blocking([None] * 2, [said(1.0), said(3.0)], **columns) == [1.0, 2.0]
    assert [evaluation.speedup for evaluation in reward.last] == [1.0, 3.0]
    with pytest.raises(BrokenReference, match="p: no Model"):
        reward.blocking([None], [said(1.0)], problem=["p"], reference=["broken"])


def test_it_is_what_trl_takes_for_an_async_function(service: Service) -> None:
    from trl.trainer.utils import is_async_callable

    assert is_async_callable(RewardFunction(service, KernelEnvironment(), SpeedReward()))


def test_a_broken_reference_ends_the_training(service: Service) -> None:
    reward = RewardFunction(service, KernelEnvironment(), SpeedReward())
    with pytest.raises(BrokenReference, match="p: no Model"):
        asyncio.run(reward([None], [said(1.0)], problem=["p"], reference=["broken"]))


@dataclass(frozen=True)
class Nothing:
    """A reward without a value; TRL would take its NaN for a completion that has no reward, and go on."""

    value: float

    def __call__(self, evaluation: Evaluation) -> float:
        return self.value


def test_a_reward_that_is_no_number_ends_the_training_too(judge: Judge, service: Service) -> None:
    reward = RewardFunction(service, KernelEnvironment(), Nothing(math.nan))
    with pytest.raises(
        UsageError, match="Nothing returned nan for a candidate of status correct: a reward gives a finite number"
    ):
        reward.blocking([None], [said(1.0)], problem=["p"], reference=["a"])
    with pytest.raises(UsageError, match="Nothing returned nan"):
        asyncio.run(reward([None], [said(1.0)], problem=["p"], reference=["a"]))


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
