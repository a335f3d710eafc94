"""What the trainer asks of whoever runs it, and what it tells about a step: the border between TRL's trainer and our loop."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rlkernel.training.diagnostics import Drift, Mismatch, spread
from rlkernel.types import Group


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What one optimiser step did."""

    step: int
    """Optimiser steps so far, from 1."""
    groups: tuple[Group, ...]
    trained_turns: int
    """Turns with a token in the loss."""
    turns: int
    """All turns of the batch."""
    trained_tokens: int
    """Sampled tokens in the loss."""
    tokens: int
    """All sampled tokens of the batch."""
    rejected: Mapping[str, int]
    """Turns that each correction rejects, by `rlkernel.training.batch.names`."""
    loss: float
    """The mean over the step's updates."""
    grad_norm: float
    """Before clipping, the mean over the step's updates."""
    learning_rate: float
    entropy: float
    """Nats per trained token."""
    clip_fraction: float
    """The share of trained tokens whose ratio the loss clips, over the step's updates. cispo clips whatever the advantage's sign;
    TRL counts the tokens with a positive one."""
    kl_reference: float | None
    """The KL from the reference policy per trained token, where the loss has one."""
    turn_norms: tuple[float, ...]
    """The norm of each turn's part of the gradient before the first update, where the run asks for it."""
    mismatch: Mismatch | None
    """How training and rollout log-probabilities differ: over the sampled tokens where a correction, staleness or a second update
    needs a pass for it, else over the trained ones, of which the loss's pass tells. None where nothing trains."""
    drift: Drift | None
    """How far the batch's updates have moved the policy, over the trained tokens; nowhere with one update. None where nothing
    trains."""
    effective_tokens: float
    """The effective sample size of the weights, as a share of the sampled tokens."""

    def numbers(self) -> dict[str, float | None]:
        """The trainer's part of a row of metrics; docs/metrics.md explains each number."""
        return {
            **spread(self.groups),
            "loss": self.loss,
            "grad_norm": self.grad_norm,
            "learning_rate": self.learning_rate,
            "entropy": self.entropy,
            "clip_fraction": self.clip_fraction,
            "approx_kl": None if self.drift is None else self.drift.kl,
            "largest_ratio": None if self.drift is None else self.drift.largest_ratio,
            "kl_reference": self.kl_reference,
            **{f"grad_norm_turn_{t}": norm for t, norm in enumerate(self.turn_norms, start=1)},
            "mismatch": None if self.mismatch is None else self.mismatch.absolute,
            "kl_k1": None if self.mismatch is None else self.mismatch.k1,
            "kl_k3": None if self.mismatch is None else self.mismatch.k3,
            "extreme_ratios": None if self.mismatch is None else self.mismatch.extreme,
            "effective_trajectories": None if self.mismatch is None else self.mismatch.effective_trajectories,
            "effective_tokens": self.effective_tokens,
            "kept_turns": self.trained_turns / self.turns,
            "kept_tokens": self.trained_tokens / self.tokens,
            **{f"rejected_{name}": turns / self.turns for name, turns in self.rejected.items()},
        }


class Hooks(Protocol):
    """What the trainer asks of the loop, all from the trainer's thread."""

    def rollout(self, step: int) -> tuple[Group, ...]:
        """The batch of the step that comes after `step` optimiser steps: `Run.rollouts` trajectories of `Run.prompts_per_step`
        problems."""

    def lease(self) -> AbstractContextManager[None]:
        """Exclusive use of the card, around GPU work that may meet evaluations there: forward, backward and update, a micro-batch
        at a time."""

    def step_done(self, facts: StepFacts) -> None:
        """Take the facts of a finished step, before its checkpoint is written."""

    def save(self, directory: Path) -> None:
        """Add to a checkpoint what the loop needs to go on from it."""

    def enough(self) -> bool:
        """Whether training ends at the checkpoint that has just become complete, because the command's time is up."""

    def check_cancelled(self) -> None:
        """Raise if the run is to end now. Called between micro-batches."""
