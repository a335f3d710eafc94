"""Every token of a turn gets the turn's advantage (the credit of GRPO, arXiv 2402.03300, and of arXiv 2602.05885)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rlkernel.types import Turn


@dataclass(frozen=True)
class UniformCredit:
    """advantage_T = the turn's advantage, once per sampled token, the stop token included."""

    def __call__(self, turn: Turn, advantage: float) -> torch.Tensor:
        """See `rlkernel.interfaces.Credit`."""
        return torch.full((len(turn.completion.token_ids),), advantage)
