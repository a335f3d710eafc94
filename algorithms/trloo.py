"""TRLOO, turn-level REINFORCE leave-one-out (arXiv 2602.05885)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch


@dataclass(frozen=True)
class TRLOO:
    """A_{k,t} = G_{k,t} - mean of the other valid trajectories at (prompt, turn) = N_t / (N_t - 1) * (G_{k,t} - mean_t).

    The baseline does not contain the sample, so the gradient is unbiased; there is no division by a standard deviation.
    N_t varies with the turn, because trajectories end early.

    Worked example, returns [1, 0, 0, 0]: mean 0.25, N/(N-1) = 4/3, so A = [1, -1/3, -1/3, -1/3].
    """

    singleton: Literal["return", "zero"] = "return"
    """A group of one has no baseline: `return` uses A = G (the paper's public code), `zero` does not train it."""

    def __post_init__(self) -> None:
        if self.singleton not in ("return", "zero"):
            raise ValueError(f"TRLOO.singleton is {self.singleton!r}: use 'return' or 'zero'")

    def __call__(self, returns_KT: torch.Tensor, valid_KT: torch.Tensor) -> torch.Tensor:
        """See `rlkernel.interfaces.Advantage`."""
        valid_KT = valid_KT.bool()
        returns_KT = torch.where(valid_KT, returns_KT.double(), 0.0)
        count_T = valid_KT.sum(0)
        others_T = (count_T - 1).clamp(min=1)
        baseline_KT = (returns_KT.sum(0) - returns_KT) / others_T
        single_KT = returns_KT if self.singleton == "return" else torch.zeros_like(returns_KT)
        advantages_KT = torch.where(count_T > 1, returns_KT - baseline_KT, single_KT)
        return torch.where(valid_KT, advantages_KT, 0.0)
