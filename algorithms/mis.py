"""MIS, masked importance sampling (IcePop of arXiv 2510.18855 by tokens; arXiv 2510.26788 by sequences): weigh or drop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from algorithms import ratios
from rlkernel.interfaces import Removes
from rlkernel.types import Group


@dataclass(frozen=True)
class MIS:
    """Weigh by rho where low <= rho <= high and drop the rest, with rho = exp(sum of d), d = log pi_train - log pi_rollout.

    The levels and what enters rho are those of TIS. What is dropped leaves the loss and its denominator.

    Worked example, a turn with ratios 4, 0.5 and 0.4: `token` weighs the first two by 4 and 0.5 and drops the third, which is
    below 0.5; `turn` weighs all three by 4 * 0.5 * 0.4 = 0.8.
    """

    level: ratios.Level = "token"
    low: float = 0.5
    high: float = 5.0
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ratios.check(self)

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """See `rlkernel.interfaces.Correction`."""
        rho_KTL = ratios.rho(self.level, log_ratios_KTL, kept_KTL)
        return torch.where((self.low <= rho_KTL) & (rho_KTL <= self.high), rho_KTL, 0.0)
