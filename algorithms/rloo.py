"""RLOO, REINFORCE leave-one-out over whole trajectories (arXiv 2402.14740)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from algorithms import group
from rlkernel.checks import check_word


@dataclass(frozen=True)
class RLOO:
    """A_k = R_k - mean of the other R_j, where R is the return to go of a trajectory's first valid turn; every turn of k has A_k.

    R is the return of the whole trajectory unless a correction takes its first turns out of the baseline.

    Unbiased like TRLOO, but with more variance: a turn is also credited with the rewards of the turns before it.

    Worked example, trajectory returns [1, 0, 0, 0]: A = [1, -1/3, -1/3, -1/3].
    """

    singleton: group.Singleton = "return"
    """A group of one has no baseline: `return` uses A = R, `zero` does not train it."""

    def __post_init__(self) -> None:
        check_word(self, "singleton", group.Singleton)

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        """See `rlkernel.interfaces.Advantage`."""
        returns_GK1, valid_GK1 = group.members("trajectory", returns_GKT, valid_GKT)
        advantages_GK1 = returns_GK1 - group.others_mean(returns_GK1, valid_GK1, self.singleton)
        return torch.where(valid_GKT, advantages_GK1, 0.0)
