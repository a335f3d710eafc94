"""Void turns (arXiv 2602.05885, public code): failing after a success teaches nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from rlkernel.checks import check_number, check_word
from rlkernel.interfaces import Removes
from rlkernel.types import Group


@dataclass(frozen=True)
class VoidTurns:
    """Reject turn t iff r_t <= threshold and some earlier r_s > threshold.

    Worked example, rewards [0, 1, 0, 1.2]: the third turn is void; the first is not, because nothing had succeeded yet.
    """

    threshold: float = 0.0
    removes: Removes = "return"
    """What a void turn is taken out of. The public code masks it, takes it out of its group and sets its reward to 0, hence
    `return`."""
    needs_ratios: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_number(self, "threshold")
        check_word(self, "removes", Removes)

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """See `rlkernel.interfaces.Correction`."""
        keep_KTL = torch.ones(kept_KTL.shape, dtype=torch.bool)
        for k, trajectory in enumerate(group.trajectories):
            succeeded = False
            for t, turn in enumerate(trajectory.turns):
                success = turn.reward > self.threshold
                keep_KTL[k, t] = success or not succeeded
                succeeded = succeeded or success
        return keep_KTL
