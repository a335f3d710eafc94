"""Statistics over a group: the valid trajectories of one (problem, turn).

Legend: G groups, K trajectories of a group, T turns, S samples of a trajectory: its T turns, or 1 where whole trajectories are
compared. `valid` says which entries are samples; the others have no influence.
"""

from __future__ import annotations

from typing import Literal

import torch

Level = Literal["turn", "trajectory"]
Singleton = Literal["return", "zero"]


def members(level: Level, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is compared: returns_GKS, float64, 0 where not valid, and valid_GKS.

    With `turn`, each turn's return to go is compared within its turn (S = T). With `trajectory`, each trajectory has one return,
    that of its first valid turn (S = 1).
    """
    valid_GKT = valid_GKT.bool()
    returns_GKT = torch.where(valid_GKT, returns_GKT.double(), 0.0)
    if level == "turn":
        return returns_GKT, valid_GKT
    first_GK1 = valid_GKT.int().argmax(-1, keepdim=True)
    return returns_GKT.gather(-1, first_GK1), valid_GKT.any(-1, keepdim=True)


def mean(values_GKS: torch.Tensor, valid_GKS: torch.Tensor) -> torch.Tensor:
    """The mean over the samples of each group, the sample itself included, as G1S; 0 for an empty group."""
    return values_GKS.sum(-2, keepdim=True) / valid_GKS.sum(-2, keepdim=True).clamp(min=1)


def others_mean(values_GKS: torch.Tensor, valid_GKS: torch.Tensor, singleton: Singleton) -> torch.Tensor:
    """The mean over the *other* samples of each sample's group, as GKS.

    A sample without others has the mean 0 under `return`, so that its advantage is its return, and its own value under `zero`,
    so that its advantage is 0.
    """
    others_G1S = valid_GKS.sum(-2, keepdim=True) - 1
    mean_GKS = (values_GKS.sum(-2, keepdim=True) - values_GKS) / others_G1S.clamp(min=1)
    alone_GKS = torch.zeros_like(values_GKS) if singleton == "return" else values_GKS
    return torch.where(others_G1S > 0, mean_GKS, alone_GKS)


def std(values_GKS: torch.Tensor, valid_GKS: torch.Tensor, ddof: int) -> torch.Tensor:
    """The standard deviation of each group with divisor N - ddof, as G1S.

    It is inf where N <= ddof or all samples are equal, so that what is divided by it is 0 and not rounding noise over eps.
    """
    centred_GKS = torch.where(valid_GKS, values_GKS - mean(values_GKS, valid_GKS), 0.0)
    degrees_G1S = valid_GKS.sum(-2, keepdim=True) - ddof
    std_G1S = (centred_GKS.square().sum(-2, keepdim=True) / degrees_G1S.clamp(min=1)).sqrt()
    largest_G1S = values_GKS.masked_fill(~valid_GKS, -torch.inf).amax(-2, keepdim=True)
    smallest_G1S = values_GKS.masked_fill(~valid_GKS, torch.inf).amin(-2, keepdim=True)
    return torch.where((degrees_G1S > 0) & (smallest_G1S < largest_G1S), std_G1S, torch.inf)
