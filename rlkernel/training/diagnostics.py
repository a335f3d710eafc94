"""How far a batch is from the policy that trains on it: numbers of a row of metrics.

Legend: B rows, C completion positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How training and rollout log-probabilities of the sampled tokens differ, with d = log pi_train - log pi_rollout."""

    absolute: float
    """The mean of abs(d)."""
    k1: float
    """KL(pi_rollout || pi_train) per token, estimated without bias by the mean of -d; it may be negative."""
    k3: float
    """The same KL by the mean of exp(d) - 1 - d, unbiased too, never negative, and of less variance where the policies are close
    (Schulman, "Approximating KL divergence", estimators k1 and k3)."""


def mismatch(train_logprobs_BC: torch.Tensor, rollout_logprobs_BC: torch.Tensor, sampled_BC: torch.Tensor) -> Mismatch:
    """The mismatch over the tokens in sampled_BC, bool.

    >>> mismatch(torch.tensor([[-1.0, -3.0]]), torch.tensor([[-1.0, -2.0]]), torch.tensor([[True, False]]))
    Mismatch(absolute=0.0, k1=0.0, k3=0.0)
    """
    d = (train_logprobs_BC.double() - rollout_logprobs_BC.double())[sampled_BC]
    # -d may be -0.0, which a table would show.
    return Mismatch(float(d.abs().mean()), float(0.0 - d.mean()), float((d.expm1() - d).mean()))


def effective_share(weights_BC: torch.Tensor, sampled_BC: torch.Tensor) -> float:
    """The effective sample size of the weights as a share of the n sampled tokens, (sum of w)^2 / (n * sum of w^2); 0 where all
    are 0. Weights of 0 and 1 have the share of the ones.

    >>> effective_share(torch.tensor([[3.0, 1.0]]), torch.tensor([[True, True]]))  # 16 / (2 * 10)
    0.8
    """
    w = weights_BC.double()[sampled_BC]
    squares = float(w.square().sum())
    return float(w.sum()) ** 2 / (len(w) * squares) if squares else 0.0
