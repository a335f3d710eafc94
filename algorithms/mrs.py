"""MRS, mismatch rejection sampling (arXiv 2602.05885): what was sampled must be what is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from algorithms import ratios
from rlkernel.checks import check_number
from rlkernel.interfaces import Removes
from rlkernel.types import Group


@dataclass(frozen=True)
class MRS:
    """Keep iff low <= rho <= high, with rho = exp(mean of d), d = log pi_train - log pi_rollout of each sampled token.

    The tokens are those that earlier corrections kept, as in the public code, which masks void turns first. The level says over
    what: `geometric` the mean over all turns of the trajectory (the paper's scripts), `turn_geo` the mean
    within a turn, `sequence` the sum over the trajectory, `turn` the sum within a turn, `token` each token alone. Whatever the
    level, a turn with a token whose ratio exp(d) is below the veto is rejected. The bounds of 0.1 % are the paper's, for new
    samples and means over thousands of tokens; docs/papers.md says which others are used where, and why.

    Worked example, a turn with d = [0.002, 0]: rho is exp(0.001) = 1.0010005 (turn_geo), above 1.001: rejected; with
    d = [0.002, -0.002] rho is 1: kept, while `token` keeps neither token.
    """

    level: ratios.Level = "geometric"
    low: float = 0.999
    high: float = 1.001
    veto: float | None = 1e-4
    """The least ratio exp(d) that a token may have, or None for no veto."""
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ratios.check(self)
        check_number(self, "veto", above=0, none="no veto")

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """See `rlkernel.interfaces.Correction`."""
        rho = ratios.log_rho(self.level, log_ratios_KTL, kept_KTL).exp()
        keep = (self.low <= rho) & (rho <= self.high)
        if self.veto is not None:
            keep = keep & ~ratios.unlikely(log_ratios_KTL, kept_KTL, self.veto).any(-1, keepdim=True)
        return keep.expand(kept_KTL.shape)
