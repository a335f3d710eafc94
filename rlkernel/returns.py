"""Rewards of single turns to returns to go.

Legend: K trajectories of one problem, T turns (padded).
"""

from __future__ import annotations

import torch


def returns_to_go(rewards_KT: torch.Tensor, valid_KT: torch.Tensor, gamma: float) -> torch.Tensor:
    """G_{k,t} = sum over valid s >= t of gamma^(s - t) r_{k,s} (arXiv 2602.05885, multi-turn objective; gamma = 1 there).

    rewards_KT: float, one reward per turn; valid_KT: bool, same shape. Returns float64 KT, 0 where not valid.
    Raises ValueError when the shapes differ.

    >>> returns_to_go(torch.tensor([[1.0, 0.0, 2.0]]), torch.ones(1, 3, dtype=torch.bool), 0.5)
    tensor([[1.5000, 1.0000, 2.0000]], dtype=torch.float64)
    """
    if rewards_KT.shape != valid_KT.shape:
        raise ValueError(f"rewards_KT is {tuple(rewards_KT.shape)} but valid_KT is {tuple(valid_KT.shape)}")
    rewards_KT = torch.where(valid_KT, rewards_KT.double(), 0.0)
    returns_KT = torch.zeros_like(rewards_KT)
    carry_K = torch.zeros(rewards_KT.shape[0], dtype=torch.float64)
    for t in reversed(range(rewards_KT.shape[1])):
        carry_K = rewards_KT[:, t] + gamma * carry_K
        returns_KT[:, t] = carry_K
    return torch.where(valid_KT, returns_KT, 0.0)
