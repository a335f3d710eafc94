from __future__ import annotations

from dataclasses import replace

import pytest

from algorithms import CREDITS, REWARDS
from algorithms.speed_reward import SpeedReward
from algorithms.uniform_credit import UniformCredit
from rlkernel.interfaces import Credit, Reward
from rlkernel.types import Completion, Evaluation, Status, Turn


def evaluation(status: Status, speedup: float | None) -> Evaluation:
    return Evaluation(status=status, detail="", speedup=speedup)


def test_registered_methods_implement_their_protocols() -> None:
    assert {"speed": SpeedReward} == REWARDS
    assert {"uniform": UniformCredit} == CREDITS
    assert all(isinstance(cls(), Reward) for cls in REWARDS.values())
    assert all(isinstance(cls(), Credit) for cls in CREDITS.values())


@pytest.mark.parametrize(
    ("speedup", "expected"),
    [
        (0.2, 0.6),  # 0.5 + 0.5 * 0.2
        (1.0, 1.0),  # 0.5 + 0.5 * 1
        (3.0, 2.0),  # 0.5 + 0.5 * 3
        (8.0, 2.0),  # capped
    ],
)
def test_a_correct_candidate(speedup: float, expected: float) -> None:
    assert SpeedReward()(evaluation(Status.CORRECT, speedup)) == pytest.approx(expected)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.CORRECT])
def test_every_other_status_is_worth_nothing(status: Status) -> None:
    assert SpeedReward()(evaluation(status, 5.0)) == 0.0


def test_the_fields_of_the_reward() -> None:
    # 0.25 + 2 * min(4, 1.5)
    assert SpeedReward(correct_weight=0.25, speed_weight=2.0, cap=1.5)(evaluation(Status.CORRECT, 4.0)) == 3.25


def test_a_correct_evaluation_without_speedup_is_our_own_failure() -> None:
    with pytest.raises(ValueError, match="without a speedup"):
        SpeedReward()(evaluation(Status.CORRECT, None))


def test_uniform_credit_covers_every_sampled_token() -> None:
    turn = Turn(
        context_ids=(1, 2),
        completion=Completion(token_ids=(5, 6, 7), logprobs=(-1.0, -1.0, -1.0), text="", stop="stop"),
        code=None,
        evaluation=evaluation(Status.NO_CODE, None),
        reward=0.0,
        feedback="",
    )
    assert UniformCredit()(turn, -0.5).tolist() == [-0.5, -0.5, -0.5]
    longer = replace(turn, completion=Completion(token_ids=(5,), logprobs=(-1.0,), text="", stop="length"))
    assert UniformCredit()(longer, 2.0).tolist() == [2.0]
