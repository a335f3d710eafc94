"""Ratios of the trained policy's probability to the sampling one's, at the levels at which corrections look at them.

Legend: K trajectories of a group, T turns (padded), L sampled tokens of a turn (padded).
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch

from rlkernel.checks import check_number, check_word
from rlkernel.errors import UsageError
from rlkernel.interfaces import Removes

Level = Literal["token", "turn", "turn_geo", "sequence", "geometric"]
"""What a ratio is of: each token alone; the product or the geometric mean over a turn's tokens; the product (`sequence`) or the
geometric mean (`geometric`) over the tokens of all turns of a trajectory."""
LARGEST = 20.0
"""A weight is between e^-20 and e^20, as in verl's documentation "rollout correction", so that no product over thousands of
tokens becomes 0 or infinite."""


def log_rho(level: Level, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor) -> torch.Tensor:
    """The logarithm of the level's ratio, float64, of a shape that broadcasts with KTL; only the kept tokens enter it."""
    d_KTL = torch.where(kept_KTL, log_ratios_KTL.double(), 0.0)
    match level:
        case "token":
            return d_KTL
        case "turn":
            return d_KTL.sum(-1, keepdim=True)
        case "turn_geo":
            return d_KTL.sum(-1, keepdim=True) / kept_KTL.sum(-1, keepdim=True).clamp(min=1)
        case "sequence":
            return d_KTL.sum((1, 2), keepdim=True)
        case "geometric":
            return d_KTL.sum((1, 2), keepdim=True) / kept_KTL.sum((1, 2), keepdim=True).clamp(min=1)


def rho(level: Level, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor) -> torch.Tensor:
    """The level's ratio for every token: rho_KTL, float64, within e^-20 and e^20."""
    return log_rho(level, log_ratios_KTL, kept_KTL).clamp(-LARGEST, LARGEST).exp().expand(kept_KTL.shape)


def unlikely(log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, least: float) -> torch.Tensor:
    """The kept tokens whose own ratio is below `least`: unlikely_KTL, bool."""
    return (log_ratios_KTL < math.log(least)) & kept_KTL


def check(method: Any) -> None:
    """Raise UsageError unless the method's `level` and `removes` are such words, and some ratio lies between `low` and `high`."""
    check_word(method, "level", Level)
    check_word(method, "removes", Removes)
    check_number(method, "low", least=0)
    check_number(method, "high", above=0, infinite=True)
    if method.low > method.high:
        name = type(method).__name__
        raise UsageError(f"{name}.low is {method.low} and {name}.high {method.high}: the low one must not be above the high one")
