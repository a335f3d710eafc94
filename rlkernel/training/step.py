"""A step on its way, as values: what its batch is before the first update, and what is known when its gradients are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from rlkernel.training.batch import Batch, Tokens
from rlkernel.training.diagnostics import Drift, Mismatch, drift, effective_share, mismatch
from rlkernel.training.hooks import StepFacts
from rlkernel.types import Group


@dataclass(frozen=True, slots=True)
class Draft:
    """A step before its first update: trajectories, their tokens, what corrections have left of them, and the loss's tensors."""

    groups: tuple[Group, ...]
    tokens: Tokens
    batch: Batch
    old_logprobs_BC: torch.Tensor | None
    """log pi_old: the trainer's log-probabilities of the sampled tokens; None where nothing needs a pass for them."""
    inputs: dict[str, torch.Tensor]
    """What the loss takes, as `LossTrainer.compute_loss` names it."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A step after its last backward pass."""

    draft: Draft
    turn_norms: tuple[float, ...]
    mismatch: Mismatch | None
    drift: Drift | None

    def facts(self, logs: Mapping[str, float], *, step: int, grad_norm: float, clipped: str) -> StepFacts:
        """The facts of the step. logs: TRL's numbers. clipped: the name of the share of clipped tokens among them."""
        draft, sampled_BC = self.draft, self.draft.tokens.policy_mask_BC.bool()
        return StepFacts(
            step=step,
            groups=draft.groups,
            trained_turns=draft.batch.trained_turns,
            turns=draft.batch.turns,
            trained_tokens=int(draft.batch.loss_mask_BC.sum()),
            tokens=int(draft.tokens.policy_mask_BC.sum()),
            rejected=dict(draft.batch.rejected),
            loss=logs["loss"],
            grad_norm=grad_norm,
            learning_rate=logs["learning_rate"],
            entropy=logs["entropy"],
            clip_fraction=logs[clipped],
            kl_reference=logs.get("kl"),
            turn_norms=self.turn_norms,
            mismatch=self.mismatch,
            drift=self.drift,
            effective_tokens=effective_share(draft.batch.weights_BC, sampled_BC),
        )


def passed(draft: Draft, latest_BC: torch.Tensor, turn_norms: tuple[float, ...], *, several: bool) -> Passed:
    """The step, by the log-probabilities of its trained tokens at their last pass, latest_BC. several: whether the batch makes
    more than one update; with one, its only pass is the one before the first update."""
    trained_BC, rollout_BC = draft.batch.loss_mask_BC.bool(), draft.tokens.rollout_logprobs_BC
    rows_B, before_BC = trained_BC.any(1), draft.old_logprobs_BC
    if before_BC is not None:
        from_sampling: Mismatch | None = mismatch(before_BC, rollout_BC, draft.tokens.policy_mask_BC.bool())
    elif bool(rows_B.any()):
        from_sampling = mismatch(latest_BC[rows_B], rollout_BC[rows_B], trained_BC[rows_B])
    else:
        from_sampling = None
    moved = drift(latest_BC, latest_BC if not several or before_BC is None else before_BC, trained_BC)
    return Passed(draft, turn_norms, from_sampling, moved)
