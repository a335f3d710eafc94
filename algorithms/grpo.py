"""GRPO (arXiv 2402.03300 eq. 4; the turn-level form is the baseline of arXiv 2602.05885)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from algorithms import group
from rlkernel.checks import check_number, check_word


@dataclass(frozen=True)
class GRPO:
    """A = (G - mean) / (std + eps) over the N valid samples of the group.

    A sample is part of its own mean, which shrinks the expected gradient by 1 - 1/N; the division by the sample's own standard
    deviation changes its direction, too. A group with N <= ddof, or of equal returns, has advantage 0. Public implementations
    differ in all four fields.

    Worked example, returns [1, 0, 0, 0]: mean 0.25, std (ddof 1) 0.5, so A = [1.5, -0.5, -0.5, -0.5].
    """

    std: bool = True
    """Divide by the standard deviation; without it this is `DrGRPO`."""
    ddof: int = 1
    """1 for the sample's standard deviation (TRL, verl), 0 for the population's (torchtitan)."""
    eps: float = 1e-6
    """Added to the standard deviation: 1e-6 in verl, 1e-4 in TRL."""
    baseline: group.Level = "turn"
    """`turn` compares returns to go within a turn; `trajectory` gives one advantage per trajectory, from its return."""

    def __post_init__(self) -> None:
        check_number(self, "ddof", least=0, most=1, whole=True)
        check_number(self, "eps", least=0)
        check_word(self, "baseline", group.Level)

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        """See `rlkernel.interfaces.Advantage`."""
        returns_GKS, valid_GKS = group.members(self.baseline, returns_GKT, valid_GKT)
        centred_GKS = returns_GKS - group.mean(returns_GKS, valid_GKS)
        advantages_GKS = centred_GKS / (group.std(returns_GKS, valid_GKS, self.ddof) + self.eps) if self.std else centred_GKS
        return torch.where(valid_GKT, advantages_GKS, 0.0)
