"""MaxRL, maximum-likelihood reinforcement learning (arXiv 2602.02710), in its turn-level form."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from algorithms import group
from rlkernel.errors import UsageError


@dataclass(frozen=True)
class MaxRL:
    """A = (G - mean) / mean over the N valid samples of the group; 0 where the mean is 0.

    For rewards of 0 and 1 this weighs a problem by the inverse of its pass rate: the gradient of the log-likelihood of success
    rather than of its probability.

    Worked example, returns [1, 0, 0, 0]: mean 0.25, so A = [3, -1, -1, -1].
    """

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        """See `rlkernel.interfaces.Advantage`. Raises UsageError for a negative return, whose mean would turn the sign."""
        returns_GKT, valid_GKT = group.members("turn", returns_GKT, valid_GKT)
        if bool((returns_GKT < 0).any()):
            raise UsageError("MaxRL divides by the mean return: give it a reward that is never negative")
        mean_G1T = group.mean(returns_GKT, valid_GKT)
        advantages_GKT = (returns_GKT - mean_G1T) / mean_G1T.masked_fill(mean_G1T == 0, torch.inf)
        return torch.where(valid_GKT, advantages_GKT, 0.0)
