"""Muon for the weight matrices and AdamW for the rest, as one optimiser that a Hugging Face Trainer can schedule and save.

From random weights, the small model learns to read a chain with AdamW alone in about four times as many steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class MuonAndAdamW(torch.optim.Optimizer):
    """Muon (Jordan et al., 2024, with the step size of arXiv 2502.16982) on 2-D weights but the embedding; AdamW elsewhere."""

    def __init__(self, model: nn.Module, *, muon: float, adamw: float) -> None:
        """muon, adamw: the two learning rates."""
        embedded = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
        matrices = [p for p in model.parameters() if p.ndim == 2 and id(p) not in embedded]
        chosen = {id(p) for p in matrices}
        others = [p for p in model.parameters() if id(p) not in chosen]
        self._parts: tuple[torch.optim.Optimizer, ...] = (
            torch.optim.Muon(matrices, lr=muon, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=adamw, weight_decay=0.0, betas=(0.9, 0.95)),
        )
        # The groups are the parts' own, so that a scheduler that sets a rate here sets it there.
        super().__init__([group for part in self._parts for group in part.param_groups], {})

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Make one step of both. No closure is taken."""
        for part in self._parts:
            part.step()
        return None

    def state_dict(self) -> dict[str, Any]:
        """The states of both, in order."""
        return {"parts": [part.state_dict() for part in self._parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up what `state_dict` returned."""
        for part, state in zip(self._parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self._parts for group in part.param_groups]
