"""The group filter of arXiv 2602.05885's public code: groups whose rewards hardly differ do not train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from rlkernel.checks import check_number, check_word
from rlkernel.interfaces import Removes
from rlkernel.types import Group


@dataclass(frozen=True)
class FlatGroups:
    """Reject all turns of a group iff the standard deviation (ddof 1) of its trajectories' last rewards is below `std`.

    The rewards are the run's own, also of turns that another rejection takes.

    Worked example: last rewards [1, 1, 1, 1] have the standard deviation 0, so the group is rejected, whatever its earlier turns
    were worth.
    """

    std: float = 1e-3
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_number(self, "std", least=0)
        check_word(self, "removes", Removes)

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """See `rlkernel.interfaces.Correction`. A group of one is kept."""
        last_K = torch.tensor([trajectory.turns[-1].reward for trajectory in group.trajectories], dtype=torch.float64)
        flat = len(last_K) > 1 and bool(last_K.std() < self.std)
        return torch.full(kept_KTL.shape, not flat)
