"""What a method returns is a number, or an index, or one line says whose fault it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from rlkernel.errors import UsageError
from rlkernel.history import History
from rlkernel.returned import check_chosen, reward_of, rewards_of
from rlkernel.training.draws import Draws
from rlkernel.types import Completion, Evaluation, Problem, Status, Turn
from rlkernel.uniform import EveryGroup

FACTS = Evaluation(Status.INCORRECT, "")
TURN = Turn((), Completion((1,), (0.0,), "", "stop"), None, FACTS, 0.0, "")
PROBLEMS = tuple(Problem(f"level1/p{i}", 1, "train", "") for i in range(4))


@dataclass(frozen=True)
class Says:
    """A reward and a credit that give what they hold."""

    value: Any

    def __call__(self, evaluation: Evaluation) -> Any:
        return self.value

    def rewards(self, turn: Turn) -> Any:
        return self.value


@pytest.mark.parametrize("number", [1, -0.5, True, np.float32(0.25)], ids=str)
def test_a_reward_is_a_number_that_can_be_written_down(number: Any) -> None:
    paid = reward_of(Says(number), FACTS)
    assert (type(paid), paid) == (float, float(number))
    assert [type(value) for value in rewards_of(Says((number, 2)), TURN)] == [float, float]


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "1", torch.tensor(1.0)], ids=str)
def test_what_is_no_finite_number_names_its_reward_and_the_status(value: Any) -> None:
    with pytest.raises(
        UsageError, match=r"^Says returned .* for a candidate of status incorrect: a reward gives a finite number"
    ):
        reward_of(Says(value), FACTS)
    with pytest.raises(UsageError, match=r"^Says\.rewards returned \(.*\): a credit gives a tuple of finite numbers"):
        rewards_of(Says((0.0, value)), TURN)


@pytest.mark.parametrize("values", [0.5, (), [0.5]], ids=str)
def test_a_credit_has_a_tuple_of_rewards(values: Any) -> None:
    with pytest.raises(UsageError, match=r"^Says\.rewards returned .*: a credit gives a tuple"):
        rewards_of(Says(values), TURN)


@dataclass(frozen=True)
class Draw(EveryGroup):
    """A sampler that always draws the same."""

    indices: tuple[Any, ...]

    def __call__(self, problems: Any, history: History, count: int, seed: int, without: frozenset[int]) -> tuple[int, ...]:
        return self.indices


@pytest.mark.parametrize(
    ("indices", "line"),
    [
        ((0, 4), "Draw chose (0, 4): a sampler gives indices of problems, here from 0 to 3"),
        ((0, -1), "Draw chose (0, -1): a sampler gives indices of problems, here from 0 to 3"),
        ((0, 1.0), "Draw chose (0, 1.0): a sampler gives indices of problems, here from 0 to 3"),
        ((2, 2), "Draw chose (2, 2): a sampler gives each problem of a step once"),
        ((2,), "Draw chose (2): a sampler gives 2 problems where it is asked for 2"),
        ((), "Draw chose (): a sampler gives 2 problems where it is asked for 2"),
        ((0, 1, 2), "Draw chose (0, 1, 2): a sampler gives 2 problems where it is asked for 2"),
    ],
    ids=str,
)
def test_a_draw_that_is_no_step_names_its_sampler(indices: tuple[Any, ...], line: str) -> None:
    with pytest.raises(UsageError) as told:
        Draws(PROBLEMS, Draw(indices), 2, 0, None).begin(0)
    assert str(told.value) == line


def test_a_second_draw_may_be_of_fewer_but_not_of_the_same() -> None:
    check_chosen(Draw(()), (), 4, 2, frozenset({0, 1}))
    check_chosen(Draw(()), (3,), 4, 2, frozenset({0, 1}))
    with pytest.raises(UsageError, match=r"^Draw chose \(3, 1\), of which \(0, 1\) are drawn already: a sampler gives each"):
        check_chosen(Draw(()), (3, 1), 4, 2, frozenset({0, 1}))
    assert Draws(PROBLEMS, Draw((np.int64(3), 0)), 2, 0, None).begin(0) == (PROBLEMS[3], PROBLEMS[0])
