"""Dr. GRPO, "GRPO done right" (arXiv 2503.20783): GRPO without the division by the standard deviation."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from algorithms import group
from rlkernel.checks import check_word


@dataclass(frozen=True)
class DrGRPO:
    """A = G - mean over the N valid samples of the group.

    The expected gradient is 1 - 1/N of the true one. The paper's other change, a loss that is not divided by the length of the
    answer, holds for every method here: the loss is a sum over a turn's tokens.

    Worked example, returns [1, 0, 0, 0]: mean 0.25, so A = [0.75, -0.25, -0.25, -0.25].
    """

    baseline: group.Level = "turn"
    """`turn` compares returns to go within a turn; `trajectory` gives one advantage per trajectory, from its return."""

    def __post_init__(self) -> None:
        check_word(self, "baseline", group.Level)

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        """See `rlkernel.interfaces.Advantage`."""
        returns_GKS, valid_GKS = group.members(self.baseline, returns_GKT, valid_GKT)
        advantages_GKS = returns_GKS - group.mean(returns_GKS, valid_GKS)
        return torch.where(valid_GKT, advantages_GKS, 0.0)
