"""TIS, truncated importance sampling (arXiv 2510.26788; arXiv 1802.01561 truncates so): weigh, but never by much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from algorithms import ratios
from rlkernel.interfaces import Removes
from rlkernel.types import Group


@dataclass(frozen=True)
class TIS:
    """Weigh by clip(rho, low, high), with rho = exp(sum of d) over a token, a turn or the trajectory, d = log pi_train - log
    pi_rollout.

    The levels `turn_geo` and `geometric` take the mean of d instead of its sum, so that the weight does not depend on the length
    (arXiv 2507.18071 normalises so). Only tokens that earlier corrections kept enter rho. At the level `sequence` without bounds
    the expected gradient is the true one, at the price of variance, which grows with the length: where d spreads by 0.03 per
    token, independently, the effective share of trajectories is near exp(-0.03^2 n), 0.91 at n = 100 tokens and 0.07 at 3,000.
    At `token` the gradient is biased, because what came before and what the return adds are weighed by nothing.

    Worked example, a turn with ratios 4 and 0.5: `token` weighs them 2 and 0.5; `turn` weighs both by min(4 * 0.5, 2) = 2.
    """

    level: ratios.Level = "token"
    low: float = 0.0
    """The least weight; above 0, tokens that training finds unlikely still count."""
    high: float = 2.0
    """The largest weight; `math.inf` does not truncate."""
    removes: ClassVar[Removes] = "loss"
    needs_ratios: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ratios.check(self)

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """See `rlkernel.interfaces.Correction`."""
        return ratios.rho(self.level, log_ratios_KTL, kept_KTL).clamp(self.low, self.high)
