"""Computes contexts into slots, many at a time, without more activations than a bounded number of tokens needs.

Legend: B rows, N new positions (right-padded), L positions attended to, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from rlkernel.policy.slots.cache import SlotCache
from rlkernel.policy.slots.plans import PrefillPlan


@dataclass(frozen=True, slots=True)
class PrefillRow:
    """A context that goes into slots; at least one of its tokens is new."""

    token_ids: tuple[int, ...]
    start: int
    """The number of tokens at the beginning whose keys and values `slots[0]` holds already."""
    slots: tuple[int, ...]
    """The slots that get the context: all requests that have it share one computation."""


def prefill(model: Any, cache: SlotCache, rows: list[PrefillRow], tokens: int) -> Iterator[tuple[list[int], torch.Tensor]]:
    """Compute rows, about `tokens` new tokens at a time; yield slots and the logits (slots, V) after their contexts."""
    waiting = sorted(rows, key=lambda row: (row.start > 0, len(row.token_ids) - row.start))
    while waiting:
        batch = [waiting.pop()]
        widest = len(batch[0].token_ids) - batch[0].start
        longest = len(batch[0].token_ids)
        while waiting and (waiting[-1].start > 0) == (batch[0].start > 0):
            longest = max(longest, len(waiting[-1].token_ids))
            # What is attended to is gathered too, which counts although it is not computed.
            if (len(batch) + 1) * max(widest, longest // 4) > tokens:
                break
            batch.append(waiting.pop())
        logits_BV = _forward(model, cache, batch, tokens)
        slots: list[int] = []
        source: list[int] = []
        for b, row in enumerate(batch):
            slots += row.slots
            source += [b] * len(row.slots)
        shared = [row for row in batch if len(row.slots) > 1]
        if shared:
            sources = [row.slots[0] for row in shared for _ in row.slots[1:]]
            targets = [slot for row in shared for slot in row.slots[1:]]
            cache.share(sources, targets, max(len(row.token_ids) for row in shared))
        yield slots, logits_BV if len(slots) == len(batch) else logits_BV[torch.tensor(source, device=logits_BV.device)]


def _forward(model: Any, cache: SlotCache, batch: list[PrefillRow], tokens: int) -> torch.Tensor:
    """The logits (B, V) after the contexts of B rows. One row that is longer than `tokens` is computed in pieces."""
    piece = max(tokens // len(batch), 1)
    starts = [row.start for row in batch]
    while True:
        ends = [min(start + piece, len(row.token_ids)) for row, start in zip(batch, starts, strict=True)]
        logits_BV = _piece(model, cache, batch, starts, ends)
        if all(end == len(row.token_ids) for row, end in zip(batch, ends, strict=True)):
            return logits_BV
        if len(batch) > 1:
            raise AssertionError("only a row that is alone is computed in pieces")
        starts = ends


def _piece(model: Any, cache: SlotCache, batch: list[PrefillRow], starts: list[int], ends: list[int]) -> torch.Tensor:
    """Compute tokens [start, end) of each row into its slot; the logits (B, V) after them."""
    device = cache.keys[0].device
    news = [end - start for start, end in zip(starts, ends, strict=True)]
    N = max(news)
    ids_BN = torch.tensor(
        [row.token_ids[start:end] + (0,) * (N - end + start) for row, start, end in zip(batch, starts, ends, strict=True)]
    )
    start_B, new_B = torch.tensor(starts), torch.tensor(news)
    column_N = torch.arange(N)
    position_BN = start_B[:, None] + column_N
    real_BN = column_N < new_B[:, None]
    slot_B = torch.tensor([row.slots[0] for row in batch])
    mask_B1NL = None
    if any(starts):
        L = min(-(-max(ends) // 16) * 16, cache.room.positions)
        mask_B1NL = (torch.arange(L, device=device) <= position_BN.to(device)[:, :, None])[:, None]
    page_T, offset_T = cache.place(slot_B[:, None].expand(-1, N)[real_BN].to(device), position_BN[real_BN].to(device))
    plan = PrefillPlan(
        flat_T=real_BN.flatten().nonzero()[:, 0].to(device),
        page_T=page_T,
        offset_T=offset_T,
        pages_BK=cache.table_SK[slot_B.to(device), : cache.room.needed(max(ends))],
        mask_B1NL=mask_B1NL,
    )
    cache.begin(plan)
    row_B, last_B = torch.arange(len(batch), device=device), (new_B - 1).to(device)
    # Logits of the last token only: the layer that makes them is shown no other.
    hook = model.get_output_embeddings().register_forward_pre_hook(lambda _, args: (args[0][row_B, last_B][:, None],))
    try:
        output = model(
            input_ids=ids_BN.to(device),
            position_ids=position_BN.clamp(max=cache.room.positions - 1).to(device),
            past_key_values=cache,
            use_cache=True,
            slots=cache,
        )
    finally:
        hook.remove()
    logits_BV: torch.Tensor = output.logits[:, -1]
    return logits_BV
