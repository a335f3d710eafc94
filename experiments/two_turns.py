"""A two-turn policy that is small enough to sum over all groups of rollouts: what an estimator does on average, exactly.

Turn 1 chooses between stopping with the kernel at hand, which ends the trajectory, and some paths on which to go on; turn 2
chooses how the path ends. Softmax over free logits everywhere.

Legend: R replicas (independent policies and rewards), A choices of turn 1 (to stop, and the paths), W paths, E endings of a path,
O outcomes of a rollout, M groups of N rollouts up to their order, B groups of a sampled batch, K = N rollouts of a group, T = 2
turns, P logits: those of turn 1, then those of turn 2 path by path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial, prod

import torch

from rlkernel.interfaces import Advantage, Correction
from rlkernel.training.returns import returns_to_go
from rlkernel.types import Group, Problem


@dataclass(frozen=True)
class TwoTurns:
    """The rewards of R replicas of the toy. Outcome 0 stops after turn 1; outcome 1 + path * endings + ending goes on."""

    first_RA: torch.Tensor
    """The rewards of turn 1's choices, float64."""
    second_RWE: torch.Tensor
    """The rewards of turn 2's choices, float64."""

    @property
    def paths(self) -> int:
        return self.second_RWE.shape[1]

    @property
    def endings(self) -> int:
        return self.second_RWE.shape[2]

    @property
    def parameters(self) -> int:
        """The number of logits, P."""
        return 1 + self.paths + self.paths * self.endings

    def outcome_rewards(self) -> torch.Tensor:
        """The reward of each turn of each outcome: rewards_ROT."""
        R = len(self.first_RA)
        rewards_ROT = torch.zeros(R, 1 + self.paths * self.endings, 2, dtype=torch.float64)
        rewards_ROT[:, 0, 0] = self.first_RA[:, 0]
        rewards_ROT[:, 1:, 0] = self.first_RA[:, 1:].repeat_interleave(self.endings, dim=1)
        rewards_ROT[:, 1:, 1] = self.second_RWE.reshape(R, -1)
        return rewards_ROT

    def outcome_valid(self) -> torch.Tensor:
        """Which turns there are: valid_OT. All outcomes but 0 have a second turn."""
        valid_OT = torch.ones(1 + self.paths * self.endings, 2, dtype=torch.bool)
        valid_OT[0, 1] = False
        return valid_OT

    def log_policy(self, logits_RP: torch.Tensor) -> torch.Tensor:
        """The log-probability of each turn's choice in each outcome: log_ROT, 0 where there is no turn."""
        R = len(logits_RP)
        first = logits_RP[:, : 1 + self.paths].log_softmax(-1)
        second = logits_RP[:, 1 + self.paths :].reshape(R, self.paths, self.endings).log_softmax(-1)
        turn_1 = torch.cat([first[:, :1], first[:, 1:].repeat_interleave(self.endings, dim=1)], 1)
        turn_2 = torch.cat([torch.zeros(R, 1, dtype=logits_RP.dtype), second.reshape(R, -1)], 1)
        return torch.stack([turn_1, turn_2], -1)

    def value(self, logits_RP: torch.Tensor) -> torch.Tensor:
        """The expected total reward of a rollout, one number per replica."""
        probability_RO = self.log_policy(logits_RP).sum(-1).exp()
        return (probability_RO * self.outcome_rewards().sum(-1)).sum(-1)

    def best(self) -> torch.Tensor:
        """The largest value that a policy can have, one number per replica."""
        return self.outcome_rewards().sum(-1).amax(-1)

    def true_gradient(self, logits_RP: torch.Tensor) -> torch.Tensor:
        """The gradient of the value, by automatic differentiation: gradient_RP."""
        logits_RP = logits_RP.detach().requires_grad_()
        (gradient_RP,) = torch.autograd.grad(self.value(logits_RP).sum(), logits_RP)
        return gradient_RP

    def scores(self, logits_RP: torch.Tensor) -> torch.Tensor:
        """The derivative of log pi by the logits for each turn's choice in each outcome, written out as chosen - pi:
        scores_ROTP."""
        R, actions, P = len(logits_RP), 1 + self.paths, self.parameters
        scores_ROTP = torch.zeros(R, 1 + self.paths * self.endings, 2, P, dtype=torch.float64)
        scores_ROTP[:, :, 0, :actions] = -logits_RP[:, None, :actions].softmax(-1)
        scores_ROTP[:, 0, 0, 0] += 1
        for path in range(self.paths):
            start = actions + path * self.endings
            pi = logits_RP[:, start : start + self.endings].softmax(-1)
            for ending in range(self.endings):
                outcome = 1 + path * self.endings + ending
                scores_ROTP[:, outcome, 0, 1 + path] += 1
                scores_ROTP[:, outcome, 1, start : start + self.endings] = -pi
                scores_ROTP[:, outcome, 1, start + ending] += 1
        return scores_ROTP


@dataclass(frozen=True)
class Moments:
    """The exact mean and spread of the gradient estimate of one group."""

    mean_RP: torch.Tensor
    spread_R: torch.Tensor
    """The square root of the summed variances of the components."""
    kept_R: torch.Tensor
    """The expected number of turns with a weight above 0, as a share of all turns."""


def moments(
    toy: TwoTurns,
    logits_RP: torch.Tensor,
    advantage: Advantage,
    N: int,
    *,
    sampling_RP: torch.Tensor | None = None,
    correction: Correction | None = None,
) -> Moments:
    """The mean and spread of 1/N * sum over k and t of w_{k,t} A_{k,t} * d log pi(choice_{k,t}), over all groups of N rollouts.

    `advantage` must judge each group for itself, `correction`, which gives the weights w, each trajectory. sampling_RP: the
    logits of the policies that sample; without them, those of the policies in training, logits_RP.
    """
    sampling_RP = logits_RP if sampling_RP is None else sampling_RP
    groups_MK = torch.tensor(list(combinations_with_replacement(range(1 + toy.paths * toy.endings), N)))
    # How many orders a group has: N! / product of the factorials of its counts.
    counts = [[row.count(outcome) for outcome in set(row)] for row in groups_MK.tolist()]
    orders_M = torch.tensor([factorial(N) / prod(factorial(c) for c in row) for row in counts], dtype=torch.float64)
    log_RO = toy.log_policy(sampling_RP).sum(-1)
    weight_RM = orders_M * log_RO[:, groups_MK].sum(-1).exp()

    R, M = weight_RM.shape
    valid_GKT = toy.outcome_valid()[groups_MK].expand(R, M, N, 2).reshape(R * M, N, 2)
    rewards_GKT = toy.outcome_rewards()[:, groups_MK].reshape(R * M, N, 2)
    advantages_RMKT = advantage(returns_to_go(rewards_GKT, valid_GKT, 1.0), valid_GKT).reshape(R, M, N, 2)
    scores_ROTP = toy.scores(logits_RP)
    given_ROT = weights(toy, logits_RP, sampling_RP, correction)
    weighted_RMKT = given_ROT[:, groups_MK] * advantages_RMKT
    estimate_RMP = torch.einsum("rmkt,rmktp->rmp", weighted_RMKT, scores_ROTP[:, groups_MK]) / N
    mean_RP = torch.einsum("rm,rmp->rp", weight_RM, estimate_RMP)
    square_R = torch.einsum("rm,rmp->r", weight_RM, (estimate_RMP - mean_RP[:, None]).square())
    turns_ROT = log_RO.exp()[..., None] * toy.outcome_valid()
    return Moments(mean_RP, square_R.sqrt(), (turns_ROT * (given_ROT > 0)).sum((1, 2)) / turns_ROT.sum((1, 2)))


def weights(toy: TwoTurns, logits_RP: torch.Tensor, sampling_RP: torch.Tensor, correction: Correction | None) -> torch.Tensor:
    """The weight of each turn of each outcome, one token per turn: weights_ROT, 0 where there is no turn."""
    valid_OT = toy.outcome_valid()
    if correction is None:
        return valid_OT.double().expand(len(logits_RP), *valid_OT.shape)
    nobody, generator = Group(Problem("toy", 1, "train", ""), ()), torch.Generator()
    ratios_ROT = toy.log_policy(logits_RP) - toy.log_policy(sampling_RP)
    given = [correction(nobody, ratios_OT[..., None], valid_OT[..., None], generator)[..., 0] for ratios_OT in ratios_ROT]
    return torch.where(valid_OT, torch.stack(given).double(), 0.0)


Gradient = Callable[[torch.Tensor], torch.Tensor]
"""A function from logits_RP to gradient_RP."""


def sampled_gradient(toy: TwoTurns, advantage: Advantage, N: int, B: int, generator: torch.Generator) -> Gradient:
    """The gradient that is estimated from B fresh groups of N rollouts per replica."""
    replica_R11 = torch.arange(len(toy.first_RA))[:, None, None]
    valid_OT, rewards_ROT = toy.outcome_valid(), toy.outcome_rewards()

    def estimate(logits_RP: torch.Tensor) -> torch.Tensor:
        probability_RO = toy.log_policy(logits_RP).sum(-1).exp()
        drawn_RBK = torch.multinomial(probability_RO, B * N, replacement=True, generator=generator).reshape(-1, B, N)
        valid_GKT = valid_OT[drawn_RBK].reshape(-1, N, 2)
        rewards_GKT = rewards_ROT[replica_R11, drawn_RBK].reshape(-1, N, 2)
        advantages_GKT = advantage(returns_to_go(rewards_GKT, valid_GKT, 1.0), valid_GKT)
        scores_RBKTP = toy.scores(logits_RP)[replica_R11, drawn_RBK]
        return torch.einsum("rbkt,rbktp->rp", advantages_GKT.reshape(-1, B, N, 2), scores_RBKTP) / (B * N)

    return estimate


def ascend(toy: TwoTurns, logits_RP: torch.Tensor, gradient: Gradient, steps: int, length: float) -> torch.Tensor:
    """The values before and after each step along `gradient`, values_RS of S = steps + 1.

    Every step has the same length, so that only the direction counts: an optimiser such as Adam undoes the scale, too.
    """
    logits_RP, values = logits_RP.clone(), [toy.value(logits_RP)]
    for _ in range(steps):
        gradient_RP = gradient(logits_RP)
        logits_RP = logits_RP + length * gradient_RP / gradient_RP.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        values.append(toy.value(logits_RP))
    return torch.stack(values, -1)
