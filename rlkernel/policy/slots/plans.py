"""What the next forward pass of a cache is: where new tokens go, and which positions each row or lane attends to.

Legend: B rows of a prefill, T tokens that are new in it, N new positions of a row, K pages of a slot, L positions attended to, n
lanes of a decode step, S slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class PrefillPlan:
    """Where the new tokens of B rows go, which are right-padded to N; T of them are not padding."""

    flat_T: torch.Tensor
    """The index of each token into (B x N)."""
    page_T: torch.Tensor
    offset_T: torch.Tensor
    """The page of each token, and its place there."""
    pages_BK: torch.Tensor
    """The pages that each row attends to."""
    mask_B1NL: torch.Tensor | None
    """The positions of the slot that each token attends to; None where no slot holds a beginning yet."""


@dataclass(frozen=True)
class LaneRun:
    """Lanes [start, end) of a decode step that attend together where Triton is not used."""

    start: int
    end: int
    pages: slice | torch.Tensor
    """Their pages: a slice where each lane has one page and these follow each other, so that they are a view; else (lanes, K)."""
    positions: int
    """The positions attended to, L."""
    mask: torch.Tensor | None
    """Added to the scores, (lanes, 1, 1, L); None where all lanes attend to all L positions."""


@dataclass(frozen=True)
class DecodePlan:
    """One new token for each lane, at position `length_S[slot_n]`."""

    slot_n: torch.Tensor
    length_S: torch.Tensor
    page_n: torch.Tensor | None = None
    offset_n: torch.Tensor | None = None
    """The page of each new token, and its place there, where Triton is not used."""
    runs: tuple[LaneRun, ...] = ()


def lane_runs(pages: Sequence[int], lengths: Sequence[int], dtype: torch.dtype) -> tuple[LaneRun, ...]:
    """The runs of lanes that have one page each and new tokens at positions `lengths`; a run has a mask only where its lengths
    differ."""
    found, a = [], 0
    for b in range(1, len(pages) + 1):
        if b < len(pages) and pages[b] == pages[b - 1] + 1:
            continue
        L = max(lengths[a:b]) + 1
        found.append(LaneRun(a, b, slice(pages[a], pages[a] + b - a), L, hidden(lengths[a:b], L, dtype)))
        a = b
    return tuple(found)


def hidden(lengths: Sequence[int], positions: int, dtype: torch.dtype) -> torch.Tensor | None:
    """The mask of lanes whose new tokens stand at positions `lengths`, (lanes, 1, 1, L); None where it would hide nothing."""
    if min(lengths) + 1 == positions:
        return None
    # As a number to add: a boolean would be turned into one in every layer.
    hidden_nL = torch.arange(positions) > torch.tensor(lengths)[:, None]
    return torch.zeros(hidden_nL.shape, dtype=dtype).masked_fill(hidden_nL, float("-inf"))[:, None, None]
