"""Every token of a turn gets the turn's advantage (the credit of GRPO, arXiv 2402.03300, and of arXiv 2602.05885)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rlkernel.interfaces import Decode
from rlkernel.types import Turn


@dataclass(frozen=True)
class UniformCredit:
    """A_token = the turn's advantage, once per sampled token, the stop token included."""

    def rewards(self, turn: Turn) -> tuple[float, ...]:
        """The turn's only reward."""
        return (turn.reward,)

    def __call__(self, turn: Turn, advantages: Sequence[float], decode: Decode) -> torch.Tensor:
        """See `rlkernel.interfaces.Credit`."""
        return torch.full((len(turn.completion.token_ids),), advantages[0])
