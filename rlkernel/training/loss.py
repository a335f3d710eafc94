"""The loss of a micro-batch, as one function of tensors. TRL's own formulas give the same numbers; a test compares them.

Legend: B rows, C completion positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rlkernel.settings import Loss
from rlkernel.training.minibatches import old_for_level


@dataclass(frozen=True, slots=True)
class LossInputs:
    """What the loss of some rows is made from, beside the policy that trains."""

    advantages_BC: torch.Tensor
    """w A: the advantage of each token times the weight that corrections give it."""
    mask_BC: torch.Tensor
    """1 for the tokens that train."""
    turns_BC: torch.Tensor
    """The turn of each sampled token from 1, else 0."""
    old_BC: torch.Tensor | None
    """log pi_old, of before the batch's first update; None where pi is still pi_old, so that r is 1."""
    weights_BC: torch.Tensor | None
    """w; only for the KL."""
    reference_BC: torch.Tensor | None
    """log pi_ref; only for the KL."""


@dataclass(frozen=True, slots=True)
class LossFound:
    """A loss, and the means over its trained tokens that are logged."""

    loss: torch.Tensor
    entropy: float
    clip_fraction: float
    kl: float | None


def loss_of(
    loss: Loss, given: LossInputs, logprobs_BC: torch.Tensor, entropies_BC: torch.Tensor, *, turns: torch.Tensor, updates: int
) -> LossFound:
    """The loss of some rows, by log pi and the entropy H of their tokens:

        L = updates / turns * sum over trained tokens of [ l(r, w A, log pi) - c H + beta w k ]

        clip       l = -min(r w A, clip(r, 1 - low, 1 + high) w A)
        cispo      l = -sg(min(r, 1 + high)) w A log pi
        reinforce  l = -w A r with r = pi / sg(pi), whose gradient is that of -w A log pi

    r = pi / pi_old by `Loss.ratio`, c = `Loss.entropy`, beta and k as `Loss.beta` says (`kl_from_reference`), sg: no gradient.
    turns: trained turns of the whole batch, over the number of processes; updates: minibatches of the batch. So the mean over the
    minibatches, and the sum over micro-batches and processes, is the batch's own sum over its turns.

    Worked example, one turn of two tokens with A = 2, w = 1, low = 0.2, high = 0.28: ratios 1.5 and 0.5 give, by clip,
    -(1.28 * 2) - (0.5 * 2) = -3.56; the first is clipped and has no gradient.
    """
    mask_BC, weighed_BC = given.mask_BC, given.advantages_BC
    # Made first: the order in which terms meet in a gradient decides its last bits, and a run is to repeat those of earlier ones.
    kl_BC = _kl(loss, given, logprobs_BC)
    old_BC = logprobs_BC.detach()
    if given.old_BC is not None and loss.kind != "reinforce":
        kept_BC = torch.where(mask_BC.bool(), given.old_BC, 0.0)
        old_BC = old_for_level(loss.ratio, logprobs_BC, kept_BC, mask_BC, given.turns_BC)
    r_BC = torch.exp(logprobs_BC - old_BC)
    above_BC = (r_BC > 1 + loss.clip_high) & (weighed_BC > 0)
    if loss.kind == "cispo":
        clipped_BC = above_BC
        token_BC = -torch.clamp(r_BC, max=1 + loss.clip_high).detach() * weighed_BC * logprobs_BC
    else:
        clipped_BC = above_BC | ((r_BC < 1 - loss.clip_low) & (weighed_BC < 0))
        bounded_BC = torch.clamp(r_BC, 1 - loss.clip_low, 1 + loss.clip_high)
        token_BC = -torch.min(r_BC * weighed_BC, bounded_BC * weighed_BC)
    found, kl = (token_BC * mask_BC).sum() / turns, None
    if loss.entropy:
        found = found - loss.entropy * (entropies_BC * mask_BC).sum() / turns
    if loss.beta:
        assert kl_BC is not None and given.weights_BC is not None
        found = found + loss.beta * (kl_BC * given.weights_BC).sum() / turns
        kl = float(kl_BC.detach().sum() / mask_BC.sum().clamp(min=1))
    return LossFound(found * updates, _mean(entropies_BC, mask_BC), _mean(clipped_BC.float(), mask_BC), kl)


def kl_from_reference(
    logprobs_BC: torch.Tensor, old_BC: torch.Tensor, reference_BC: torch.Tensor, mask_BC: torch.Tensor
) -> torch.Tensor:
    """The KL of each trained token's policy from the reference, r (rho - 1 - log rho), and 0 elsewhere: kl_BC.

    rho = pi_ref / pi, and r = pi / pi_old of the token alone, which makes the gradient unbiased where pi_old has sampled
    (arXiv 2512.02556, section 3.1). mask_BC: 1 for trained tokens; what the other log-probabilities are has no influence.
    """
    kept_BC = mask_BC.bool()
    # Before exp and not after it: 0 times an infinite gradient is no number.
    d_BC = torch.where(kept_BC, reference_BC - logprobs_BC, 0.0)
    r_BC = torch.where(kept_BC, logprobs_BC - old_BC, 0.0).exp()
    return r_BC * (d_BC.exp() - 1 - d_BC)


def _kl(loss: Loss, given: LossInputs, logprobs_BC: torch.Tensor) -> torch.Tensor | None:
    """The KL of each trained token, where the loss has one."""
    if not loss.beta:
        return None
    assert given.reference_BC is not None
    old_BC = logprobs_BC.detach() if given.old_BC is None else given.old_BC
    return kl_from_reference(logprobs_BC, old_BC, given.reference_BC, given.mask_BC)


def _mean(values_BC: torch.Tensor, mask_BC: torch.Tensor) -> float:
    """The mean over the trained tokens."""
    return float((values_BC.detach() * mask_BC).sum() / mask_BC.sum().float().clamp(min=1.0))
