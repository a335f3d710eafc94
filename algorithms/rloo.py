"""RLOO, REINFORCE leave-one-out over whole trajectories (arXiv 2402.14740)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from algorithms import group
from rlkernel.errors import UsageError


@dataclass(frozen=True)
class RLOO:
    """A_k = R_k - mean of the other R_j, where R is the return of the whole trajectory; every turn of k has A_k.

    Unbiased like TRLOO, but with more variance: a turn is also credited with the rewards of the turns before it.

    Worked example, trajectory returns [1, 0, 0, 0]: A = [1, -1/3, -1/3, -1/3].
    """

    singleton: group.Singleton = "return"
    """A group of one has no baseline: `return` uses A = R, `zero` does not train it."""

    def __post_init__(self) -> None:
        if self.singleton not in ("return", "zero"):
            raise UsageError(f"RLOO.singleton is {self.singleton!r}: use 'return' or 'zero'")

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        """See `rlkernel.interfaces.Advantage`."""
        returns_GK1, valid_GK1 = group.members("trajectory", returns_GKT, valid_GKT)
        advantages_GK1 = returns_GK1 - group.others_mean(returns_GK1, valid_GK1, self.singleton)
        return torch.where(valid_GKT, advantages_GK1, 0.0)
