"""The veto of arXiv 2602.05885 and of verl's documentation "rollout correction", alone: one impossible token spoils the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from algorithms import ratios
from rlkernel.checks import check_number, check_word
from rlkernel.interfaces import Removes
from rlkernel.types import Group

Scope = Literal["turn", "sequence"]


@dataclass(frozen=True)
class Veto:
    """Drop the turn, or the trajectory, that has a token with pi_train / pi_rollout < least.

    Only tokens that earlier corrections kept are looked at. It combines with any weight: `(Veto(), TIS())`.

    Worked example, two turns with ratios [1, 0.00005] and [1]: `turn` drops the first turn, `sequence` drops both.
    """

    least: float = 1e-4
    level: Scope = "sequence"
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self, "least", above=0)
        check_word(self, "level", Scope)
        check_word(self, "removes", Removes)

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """See `rlkernel.interfaces.Correction`."""
        unlikely_KTL = ratios.unlikely(log_ratios_KTL, kept_KTL, self.least)
        spoilt = unlikely_KTL.any(-1, keepdim=True)
        if self.level == "sequence":
            spoilt = spoilt.any(1, keepdim=True)
        return (~spoilt).expand(kept_KTL.shape)
