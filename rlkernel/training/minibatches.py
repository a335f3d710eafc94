"""One batch, several updates: which rows each of them takes, and what the importance ratio is of.

A minibatch is a number of whole groups. The sum of a group's advantages is near 0, because its baseline is its own mean: part of
a group would push all of its tokens one way. Every minibatch's loss is divided by the turns of the whole batch over the number of
minibatches, not by its own turns: a turn counts the same wherever it falls, and the mean of the minibatches' gradients at the
same weights is exactly the batch's gradient.

Legend: B rows, C completion positions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from rlkernel.settings import Ratio


def minibatches(group_sizes: Sequence[int], updates: int, epochs: int, seed: int) -> list[list[int]]:
    """The rows of every update, in ascending order: each of the `epochs` shuffles the groups and cuts them into `updates` equal
    parts.

    group_sizes: rows of each group, in the order of the batch. Raises ValueError unless `updates` divides their number.

    >>> minibatches([2, 1, 2, 1], 2, 1, seed=0)
    [[2, 5], [0, 1, 3, 4]]
    """
    if len(group_sizes) % updates:
        raise ValueError(f"{len(group_sizes)} groups cannot be cut into {updates} equal numbers of whole groups")
    starts = [sum(group_sizes[:g]) for g in range(len(group_sizes))]
    shuffle, size = random.Random(seed), len(group_sizes) // updates
    found = []
    for _ in range(epochs):
        order = shuffle.sample(range(len(group_sizes)), len(group_sizes))
        for first in range(0, len(order), size):
            groups = sorted(order[first : first + size])
            found.append([row for g in groups for row in range(starts[g], starts[g] + group_sizes[g])])
    return found


def old_for_level(
    level: Ratio, logprobs_BC: torch.Tensor, old_BC: torch.Tensor, mask_BC: torch.Tensor, turns_BC: torch.Tensor
) -> torch.Tensor:
    """What to subtract from logprobs_BC, so that the difference is the level's mean of logprobs_BC - old_BC, while its gradient
    is that of each token alone (GSPO-token, arXiv 2507.18071, section 4.3). No gradient passes through it.

    mask_BC: the trained tokens, which alone enter the means. turns_BC: int64, the turn of each sampled token from 1, else 0.
    """
    if level == "token":
        return old_BC
    with torch.no_grad():
        of_BC = turns_BC if level == "turn" else torch.ones_like(turns_BC)
        kept_BC = mask_BC.to(logprobs_BC.dtype)
        shape = (len(of_BC), int(turns_BC.max()) + 2)
        sums = logprobs_BC.new_zeros(shape).scatter_add(1, of_BC, (logprobs_BC - old_BC) * kept_BC)
        counts = logprobs_BC.new_zeros(shape).scatter_add(1, of_BC, kept_BC)
        return logprobs_BC - (sums / counts.clamp(min=1)).gather(1, of_BC)
