"""What a batch has to learn from, and how far it is from the policy that trains on it: numbers of a row of metrics.

Legend: B rows, C completion positions.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rlkernel.types import Group


def spread(groups: Sequence[Group]) -> dict[str, float]:
    """How the rewards of a group's trajectories differ, turn by turn; the names are those of TRL's trainer.

    `reward_std`: the standard deviation (over K - 1) of the rewards of one turn, the mean over groups and turns that two
    trajectories have reached. `frac_reward_zero_std`: the share of groups in which no turn has any spread, so that no estimator
    with a baseline learns from them.
    """
    deviations: list[float] = []
    flat = 0
    for group in groups:
        rewards = [[turn.reward for turn in trajectory.turns] for trajectory in group.trajectories]
        turns = [[row[t] for row in rewards if len(row) > t] for t in range(max(map(len, rewards)))]
        own = [statistics.stdev(values) for values in turns if len(values) > 1]
        deviations += own
        flat += not any(own)
    return {
        "reward_std": sum(deviations) / len(deviations) if deviations else 0.0,
        "frac_reward_zero_std": flat / len(groups),
    }


def ages(groups: Sequence[Group], step: int, *, by_turn: bool) -> dict[str, float]:
    """`age`: the mean over the sampled tokens of the steps between their weights and those of step `step`, from 0, which they
    update. by_turn: also `age_turn_<t>`, the mean over the tokens of turn t, from 1."""
    found: dict[int, list[int]] = {}
    for group in groups:
        for trajectory in group.trajectories:
            for t, turn in enumerate(trajectory.turns, start=1):
                found.setdefault(t, []).extend(step - at for at in turn.completion.sampled_at)
    means = {f"age_turn_{t}": statistics.fmean(own) for t, own in found.items()} if by_turn else {}
    return {"age": statistics.fmean(age for own in found.values() for age in own), **means}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How training and rollout log-probabilities of the sampled tokens differ, with d = log pi_train - log pi_rollout."""

    absolute: float
    """The mean of abs(d)."""
    k1: float
    """KL(pi_rollout || pi_train) per token, estimated without bias by the mean of -d; it may be negative."""
    k3: float
    """The same KL by the mean of exp(d) - 1 - d, unbiased too, never negative, and of less variance where the policies are close
    (Schulman, "Approximating KL divergence", estimators k1 and k3)."""
    extreme: float
    """The share of tokens whose ratio exp(d) is above 2 or below 1/2."""
    effective_trajectories: float
    """The effective sample size of the trajectories, weighed by exp(sum of d), as a share of their number."""


def mismatch(train_logprobs_BC: torch.Tensor, rollout_logprobs_BC: torch.Tensor, sampled_BC: torch.Tensor) -> Mismatch:
    """The mismatch over the tokens in sampled_BC, bool.

    >>> mismatch(torch.tensor([[-1.0, -3.0]]), torch.tensor([[-1.0, -2.0]]), torch.tensor([[True, False]]))
    Mismatch(absolute=0.0, k1=0.0, k3=0.0, extreme=0.0, effective_trajectories=1.0)
    """
    d_BC = torch.where(sampled_BC, train_logprobs_BC.double() - rollout_logprobs_BC.double(), 0.0)
    d, sum_B = d_BC[sampled_BC], d_BC.sum(1)
    rho_B = (sum_B - sum_B.max()).exp()
    return Mismatch(
        absolute=float(d.abs().mean()),
        k1=float(0.0 - d.mean()),  # -d may be -0.0, which a table would show
        k3=float((d.expm1() - d).mean()),
        extreme=float((d.abs() > math.log(2)).double().mean()),
        effective_trajectories=float(rho_B.sum().square() / (len(rho_B) * rho_B.square().sum())),
    )


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the updates of one batch have moved the policy, with d = log pi - log pi_old of each trained token: pi_old is of
    before the first update, pi of the token's last pass through the model."""

    kl: float
    """KL(pi_old || pi) per token, estimated by the mean of exp(d) - 1 - d, as `Mismatch.k3`; PPO codes call it approx_kl."""
    largest_ratio: float
    """The largest exp(abs(d)): one token's ratio, or its inverse. At most e^20."""


def drift(logprobs_BC: torch.Tensor, old_BC: torch.Tensor, trained_BC: torch.Tensor) -> Drift | None:
    """The drift over the tokens in trained_BC, bool; None where there is none.

    Worked example, two tokens whose probabilities went from 0.5 to 0.6 and from 0.4 to 0.2: d is log 1.2 = 0.182 and
    log 0.5 = -0.693; kl is ((0.2 - 0.182) + (-0.5 + 0.693)) / 2 = 0.105, and the largest ratio 1 / 0.5.

    >>> found = drift(torch.tensor([[0.6, 0.2]]).log(), torch.tensor([[0.5, 0.4]]).log(), torch.tensor([[True, True]]))
    >>> print(round(found.kl, 3), round(found.largest_ratio, 3))
    0.105 2.0
    """
    d = logprobs_BC.double()[trained_BC] - old_BC.double()[trained_BC]
    if not len(d):
        return None
    # A ratio without a bound may be infinite, which is no number to a reader of JSON.
    return Drift(kl=float((d.expm1() - d).mean()), largest_ratio=float(d.abs().max().clamp(max=20.0).exp()))


def effective_share(weights_BC: torch.Tensor, sampled_BC: torch.Tensor) -> float:
    """The effective sample size of the weights as a share of the n sampled tokens, (sum of w)^2 / (n * sum of w^2); 0 where all
    are 0. Weights of 0 and 1 have the share of the ones.

    >>> effective_share(torch.tensor([[3.0, 1.0]]), torch.tensor([[True, True]]))  # 16 / (2 * 10)
    0.8
    """
    w = weights_BC.double()[sampled_BC]
    squares = float(w.square().sum())
    return float(w.sum()) ** 2 / (len(w) * squares) if squares else 0.0
