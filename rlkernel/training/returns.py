"""Rewards of single turns to returns to go, and the check of the advantages that an estimator makes of them.

Legend: G groups, K trajectories of a group, T turns (padded).
"""

from __future__ import annotations

from copy import deepcopy

import torch

from rlkernel.errors import UsageError
from rlkernel.interfaces import Advantage, Credit


def returns_to_go(rewards_GKT: torch.Tensor, valid_GKT: torch.Tensor, gamma: float) -> torch.Tensor:
    """G_{k,t} = sum over valid s >= t of gamma^(s - t) r_{k,s} (arXiv 2602.05885, multi-turn objective; gamma = 1 there).

    rewards_GKT: float, one reward per turn; valid_GKT: bool, same shape. Returns float64 GKT, 0 where not valid.
    Raises ValueError when the shapes differ.

    >>> returns_to_go(torch.tensor([[[1.0, 0.0, 2.0]]]), torch.ones(1, 1, 3, dtype=torch.bool), 0.5)
    tensor([[[1.5000, 1.0000, 2.0000]]], dtype=torch.float64)
    """
    if rewards_GKT.shape != valid_GKT.shape:
        raise ValueError(f"rewards_GKT is {tuple(rewards_GKT.shape)} but valid_GKT is {tuple(valid_GKT.shape)}")
    rewards_GKT = torch.where(valid_GKT, rewards_GKT.double(), 0.0)
    returns_GKT = torch.zeros_like(rewards_GKT)
    carry_GK = torch.zeros(rewards_GKT.shape[:-1], dtype=torch.float64)
    for t in reversed(range(rewards_GKT.shape[-1])):
        carry_GK = rewards_GKT[..., t] + gamma * carry_GK
        returns_GKT[..., t] = carry_GK
    return torch.where(valid_GKT, returns_GKT, 0.0)


def check_advantages(advantage: Advantage, advantages_GKT: object, valid_GKT: torch.Tensor) -> None:
    """Raise UsageError for what an estimator returned that would train as nonsense, or fail where nobody sees why."""
    name, wanted = type(advantage).__name__, tuple(valid_GKT.shape)
    if not isinstance(advantages_GKT, torch.Tensor):
        raise UsageError(f"{name} returned a {type(advantages_GKT).__name__}: an advantage gives a tensor of shape {wanted}")
    if advantages_GKT.shape != valid_GKT.shape:
        raise UsageError(
            f"{name} returned a tensor of shape {tuple(advantages_GKT.shape)} for returns of shape {wanted}: an "
            "advantage gives one number per turn"
        )
    if not bool(torch.isfinite(advantages_GKT).all()):
        raise UsageError(f"{name} returned advantages that are not finite: look for a division by 0, and mask what is not valid")


def check_credited(credit: Credit, advantage_L: object, tokens: int) -> None:
    """Raise UsageError for what a credit returned that is not one finite number per token of its turn."""
    name = type(credit).__name__
    if not isinstance(advantage_L, torch.Tensor) or advantage_L.shape != (tokens,):
        given = type(advantage_L).__name__
        if isinstance(advantage_L, torch.Tensor):
            given = f"tensor of shape {tuple(advantage_L.shape)}"
        raise UsageError(f"{name} returned a {given} for a turn of {tokens} tokens: a credit gives a tensor of shape ({tokens},)")
    if not bool(torch.isfinite(advantage_L).all()):
        raise UsageError(f"{name} returned values that are not finite for a turn of {tokens} tokens: look for a division by 0")


def try_advantage(advantage: Advantage, rollouts: int, turns: int) -> None:
    """Ask a copy of an estimator about made-up returns, so that a mistake in it shows before a policy is loaded. Raises
    UsageError for what `check_advantages` refuses, and whatever the estimator raises. One that cannot be copied, because it
    holds a lock or a file, is not tried.

    Of three groups, the first has returns that all differ. Those of the second are 0. In the third, every first turn is paid 1
    and no other, and all trajectories but one end there.
    """
    try:
        copied = deepcopy(advantage)
    except TypeError:
        return
    rewards_GKT = torch.zeros(3, rollouts, turns, dtype=torch.float64)
    rewards_GKT[0] = torch.arange(rollouts * turns).reshape(rollouts, turns) / 8
    rewards_GKT[2, :, 0] = 1.0
    valid_GKT = torch.ones(3, rollouts, turns, dtype=torch.bool)
    valid_GKT[2, 1:, 1:] = False
    check_advantages(advantage, copied(returns_to_go(rewards_GKT, valid_GKT, 1.0), valid_GKT), valid_GKT)
