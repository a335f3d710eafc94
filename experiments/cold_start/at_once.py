"""How many of a step's conversations go through a model in one forward pass, so that a card of any size trains a policy."""

from __future__ import annotations

import torch

GIB_OF_ONE = 1.1
"""What a conversation of 4,096 tokens takes of a card in a step of the largest policy that is made from nothing: an estimate.
With 64 of them an H100 ran out of memory at 63.9 GiB, beside other processes, an H200 did not. Smaller policies take less."""
USABLE = 0.9
"""The part of a card's free memory that a step may take."""


def at_once(share: int, context: int) -> int:
    """The conversations in one forward pass, of a process's `share` of a step; all of them where there is no GPU. context: the
    most tokens of one."""
    if not torch.cuda.is_available():
        return share
    return fitting(share, context, torch.cuda.mem_get_info()[0] / 2**30)


def fitting(share: int, context: int, free_gib: float) -> int:
    """The share, halved until it fits where so many GiB are free, as far as it can be halved.

    >>> [fitting(64, 4096, gib) for gib in (139.8, 79.2, 44.4, 23.5)]  # H200, H100, L40S, RTX 4090
    [64, 64, 32, 16]
    >>> fitting(6, 4096, 1.0)
    3
    """
    while share % 2 == 0 and share * GIB_OF_ONE * context / 4096 > USABLE * free_gib:
        share //= 2
    return share
