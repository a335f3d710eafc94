"""TRLOO, turn-level REINFORCE leave-one-out (arXiv 2602.05885)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from algorithms import group
from rlkernel.checks import check_word


@dataclass(frozen=True)
class TRLOO:
    """A_{k,t} = G_{k,t} - mean of the other valid G_{j,t} = N_t / (N_t - 1) * (G_{k,t} - mean_t).

    The baseline does not contain the sample, so the gradient is unbiased; there is no division by a standard deviation.
    N_t varies with the turn, because trajectories end early.

    Worked example, returns [1, 0, 0, 0]: mean 0.25, N/(N-1) = 4/3, so A = [1, -1/3, -1/3, -1/3].
    """

    singleton: group.Singleton = "return"
    """A group of one has no baseline: `return` uses A = G (the paper's public code), `zero` does not train it."""

    def __post_init__(self) -> None:
        check_word(self, "singleton", group.Singleton)

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        """See `rlkernel.interfaces.Advantage`."""
        returns_GKT, valid_GKT = group.members("turn", returns_GKT, valid_GKT)
        advantages_GKT = returns_GKT - group.others_mean(returns_GKT, valid_GKT, self.singleton)
        return torch.where(valid_GKT, advantages_GKT, 0.0)
