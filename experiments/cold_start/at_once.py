"""How many of a step's conversations go through a model in one forward pass, so that a card of any size trains a policy."""

from __future__ import annotations

import torch

GIB_OF_ONE = 1.1
"""What a conversation of 4,096 tokens takes of a card in a step of the largest policy that is made from nothing. An H100 was full
at 63.9 GiB with 64 of them, beside other processes; smaller policies take less."""
USABLE = 0.9
"""The part of a card's memory that a step may take."""


def at_once(share: int, context: int) -> int:
    """The conversations in one forward pass, of a process's `share` of a step; all of them where there is no GPU. context: the
    most tokens of one."""
    if not torch.cuda.is_available():
        return share
    return fitting(share, context, torch.cuda.get_device_properties(0).total_memory / 2**30)


def fitting(share: int, context: int, card_gib: float) -> int:
    """The share, halved until it fits a card of so many GiB, as far as it can be halved.

    >>> [fitting(64, 4096, gib) for gib in (139.8, 79.2, 44.4, 23.5)]  # H200, H100, L40S, RTX 4090
    [64, 64, 32, 16]
    >>> fitting(6, 4096, 1.0)
    3
    """
    while share % 2 == 0 and share * GIB_OF_ONE * context / 4096 > USABLE * card_gib:
        share //= 2
    return share
