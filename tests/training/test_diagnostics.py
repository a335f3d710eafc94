"""How far a batch is from its policy, in numbers by hand and against the divergence that they estimate."""

from __future__ import annotations

import math

import pytest
import torch

from rlkernel.training.diagnostics import Drift, Mismatch, drift, effective_share, mismatch, spread
from tests.algorithms.groups import group, turn


def test_the_mismatch_by_hand() -> None:
    # d = 0.5 and -0.1; the third token was not sampled.
    train, rollout = torch.tensor([[-1.0, -2.1], [-9.0, 0.0]]), torch.tensor([[-1.5, -2.0], [0.0, 0.0]])
    found = mismatch(train, rollout, torch.tensor([[True, True], [False, False]]))
    assert found.absolute == pytest.approx((0.5 + 0.1) / 2)
    assert found.k1 == pytest.approx(-(0.5 - 0.1) / 2)
    # e^0.5 - 1 - 0.5 = 0.148721 and e^-0.1 - 1 + 0.1 = 0.004837
    assert found.k3 == pytest.approx((0.148721 + 0.004837) / 2, abs=1e-6)


def test_the_drift_by_hand() -> None:
    # Probabilities from 0.5 to 0.6 and from 0.4 to 0.2; the third token, a hundred times as likely now, does not train.
    old, now = torch.tensor([[0.5, 0.4, 0.005]]).log(), torch.tensor([[0.6, 0.2, 0.5]]).log()
    trained = torch.tensor([[True, True, False]])
    found = drift(now, old, trained)
    assert found is not None
    # r - 1 - log r: 1.2 - 1 - 0.182322 = 0.017678 and 0.5 - 1 + 0.693147 = 0.193147
    assert found.kl == pytest.approx((0.017678 + 0.193147) / 2, abs=1e-6)
    assert found.largest_ratio == pytest.approx(0.4 / 0.2)
    assert drift(old, old, trained) == Drift(0.0, 1.0)
    assert drift(now, old, torch.zeros(1, 3, dtype=torch.bool)) is None
    # A token that has become impossible is a number, too.
    gone = drift(torch.tensor([[-9e3]]), torch.tensor([[-1.0]]), torch.tensor([[True]]))
    assert gone is not None and gone.largest_ratio == pytest.approx(math.exp(20)) and gone.kl == pytest.approx(8998)


def test_spread_is_of_the_rewards_of_one_turn_in_one_group() -> None:
    # Turn 1 has 1 and 3: their mean is 2, so sqrt((1 + 1) / 1); turn 2, which one trajectory reached, has no spread of its own.
    uneven = group([turn(1.0), turn(9.0)], [turn(3.0)])
    # Each turn has one reward, though the turns differ.
    flat = group([turn(0.1), turn(0.7)], [turn(0.1), turn(0.7)], [turn(0.1), turn(0.7)])
    assert spread([uneven]) == {"reward_std": pytest.approx(math.sqrt(2)), "frac_reward_zero_std": 0.0}
    assert spread([flat]) == {"reward_std": 0.0, "frac_reward_zero_std": 1.0}
    # Three turns of two groups count: sqrt(2), 0 and 0.
    assert spread([uneven, flat]) == {"reward_std": pytest.approx(math.sqrt(2) / 3), "frac_reward_zero_std": 0.5}


def test_without_a_difference_all_is_0() -> None:
    same = torch.tensor([[-1.0, -2.0]])
    assert mismatch(same, same, torch.ones(1, 2, dtype=torch.bool)) == Mismatch(
        0.0, 0.0, 0.0, extreme=0.0, effective_trajectories=1.0
    )


def test_both_estimators_mean_the_divergence_of_rollout_from_trainer() -> None:
    # Rollouts draw the tokens with 3/4 and 1/4, the trainer has 1/2 each: KL = 3/4 ln(3/2) + 1/4 ln(1/2) = 0.130812.
    rollout, train = torch.tensor([[0.75, 0.75, 0.75, 0.25]]).log(), torch.full((1, 4), 0.5).log()
    found = mismatch(train, rollout, torch.ones(1, 4, dtype=torch.bool))
    assert found.k1 == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5), abs=1e-7)
    assert found.k3 == pytest.approx(found.k1, abs=1e-7)


def test_extreme_ratios_and_the_effective_number_of_trajectories() -> None:
    # Ratios 3, 0.6 and 1.9 | 1/3: beyond 2 or 1/2 are two of four; by trajectories 3.42 and 1/3.
    ratios, sampled = torch.tensor([[3.0, 0.6, 1.9], [1 / 3, 7.0, 7.0]]), torch.tensor([[True] * 3, [True, False, False]])
    found = mismatch(ratios.log() - 5, torch.full((2, 3), -5.0), sampled)
    assert found.extreme == 0.5
    assert found.effective_trajectories == pytest.approx((3.42 + 1 / 3) ** 2 / (2 * (3.42**2 + 1 / 9)), rel=1e-5)
    # Sums of thousands of nats neither overflow nor divide by 0: one of two trajectories has all the weight.
    far = mismatch(torch.tensor([[-9e3], [0.0]]), torch.tensor([[0.0], [-9e3]]), torch.ones(2, 1, dtype=torch.bool))
    assert far.effective_trajectories == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("weights", "share"),
    [
        ([1.0, 1.0, 1.0, 1.0], 1.0),
        ([2.0, 2.0, 2.0, 2.0], 1.0),
        ([1.0, 0.0, 1.0, 0.0], 0.5),
        ([0.0, 0.0, 0.0, 0.0], 0.0),
        # (3 + 1 + 1 + 1)^2 / (4 * (9 + 3)) = 36 / 48
        ([3.0, 1.0, 1.0, 1.0], 0.75),
        ([1e8, 1e-9, 1e-9, 1e-9], 0.25),
    ],
)
def test_the_effective_share(weights: list[float], share: float) -> None:
    weights_BC = torch.tensor([[*weights, 5.0]])  # the last is not sampled
    assert effective_share(weights_BC, torch.tensor([[True] * 4 + [False]])) == pytest.approx(share)
