"""REINFORCE++ (arXiv 2501.03262): returns normalised over the whole batch instead of over each group."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from algorithms import group
from rlkernel.checks import check_number


@dataclass(frozen=True)
class ReinforcePP:
    """A = (G - mean) / (std + eps) over all valid turns of all groups of the batch.

    Worked example, two groups with returns [1, 1] and [0, 0]: mean 0.5, std (ddof 1) sqrt(1/3), so A = 0.866 and -0.866, where
    GRPO has no gradient.
    """

    group_baseline: bool = False
    """Subtract the group's mean first (the paper's REINFORCE++-baseline)."""
    ddof: int = 1
    eps: float = 1e-8

    def __post_init__(self) -> None:
        check_number(self, "ddof", least=0, most=1, whole=True)
        check_number(self, "eps", least=0)

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        """See `rlkernel.interfaces.Advantage`. The paper normalises over tokens, this over turns."""
        returns_GKT, valid_GKT = group.members("turn", returns_GKT, valid_GKT)
        if self.group_baseline:
            returns_GKT = torch.where(valid_GKT, returns_GKT - group.mean(returns_GKT, valid_GKT), 0.0)
        # One group of all turns: 1 x N x 1.
        batch_1N1, valid_1N1 = returns_GKT.reshape(1, -1, 1), valid_GKT.reshape(1, -1, 1)
        centred_1N1 = batch_1N1 - group.mean(batch_1N1, valid_1N1)
        advantages_1N1 = centred_1N1 / (group.std(batch_1N1, valid_1N1, self.ddof) + self.eps)
        return torch.where(valid_GKT, advantages_1N1.reshape(returns_GKT.shape), 0.0)
