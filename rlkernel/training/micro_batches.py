"""A micro-batch laid out so that plain causal attention is right: every row starts in column 0, padding only at the end.

TRL pads prompts on the left, which needs a mask of L x L per row and layer; without it attention does half the work and
frameworks choose their fastest kernels. The loss is the same: what moves from prompt to completion is masked.

Legend: B rows, P prompt columns, C completion columns, L columns of the new layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface

CAUSAL = "rlkernel_causal_sdpa"
_PROMPT = ("prompt_ids", "prompt_mask")


def micro_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Rows of similar length together, the longest first, so that little is padding and what does not fit fails at once.

    A micro-batch has at most `budget` tokens, padding included, or is a single longer row. Ties keep their order.

    >>> micro_batches([3, 9, 4, 3], 10)
    [[1], [2, 0], [3]]
    """
    found: list[list[int]] = []
    longest = 0
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if not found or longest * (len(found[-1]) + 1) > budget:
            found.append([])
            longest = lengths[row]
        found[-1].append(row)
    return found


def deal(lengths: Sequence[int], processes: int) -> list[list[int]]:
    """Rows for each process, none where there are too few: the longest first, to the process that has the fewest tokens so far.

    >>> deal([3, 9, 4, 3], 2)
    [[1], [2, 0, 3]]
    """
    found: list[list[int]] = [[] for _ in range(processes)]
    tokens = [0] * processes
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        fewest = min(range(processes), key=tokens.__getitem__)
        found[fewest].append(row)
        tokens[fewest] += lengths[row]
    return found


def left_align(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """TRL's inputs of one micro-batch, without padding before or columns beyond the longest row.

    The prompt becomes the columns that are prompt in every row; the rest of a longer prompt becomes masked completion: there
    `tool_mask`, `advantages` and recorded log-probabilities are 0. Tensors that are not (B, C) are passed through.
    """
    prompt_mask_BP, completion_mask_BC = inputs["prompt_mask"], inputs["completion_mask"]
    (B, P), C = prompt_mask_BP.shape, completion_mask_BC.shape[1]
    prompt_B, completion_B = prompt_mask_BP.sum(1), completion_mask_BC.sum(1)
    length_B = prompt_B + completion_B
    L, split = int(length_B.max()), int(prompt_B.min())
    column_L = torch.arange(L, device=prompt_mask_BP.device)
    valid_BL = column_L < length_B[:, None]
    # A prompt ends at column P, where its completion starts, so a row is contiguous in the concatenation.
    source_BL = (P - prompt_B[:, None] + column_L).clamp(max=P + C - 1)
    ids_BL = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1).gather(1, source_BL) * valid_BL
    aligned = dict(inputs)
    for key, value in inputs.items():
        if key not in _PROMPT and value.shape == (B, C):
            aligned[key] = (pad(value, (P, 0)).gather(1, source_BL) * valid_BL)[:, split:]
    aligned["prompt_ids"], aligned["completion_ids"] = ids_BL[:, :split], ids_BL[:, split:]
    aligned["prompt_mask"] = valid_BL[:, :split].to(prompt_mask_BP.dtype)
    aligned["completion_mask"] = valid_BL[:, split:].to(completion_mask_BC.dtype)
    return aligned


def _causal_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Causal attention without a mask: padding at the end cannot be seen by what comes before it; its own outputs are masked by
    the loss."""
    attended = scaled_dot_product_attention(query, key, value, dropout_p=dropout, scale=scaling, is_causal=True, enable_gqa=True)
    return attended.transpose(1, 2).contiguous(), None


def _no_mask(*args: Any, **kwargs: Any) -> None:
    """The mask function that belongs to `_causal_attention`."""


AttentionInterface.register(CAUSAL, _causal_attention)
AttentionMaskInterface.register(CAUSAL, _no_mask)


@contextmanager
def causal_attention(model: Any) -> Iterator[None]:
    """Let a model attend without masks to rows laid out by `left_align`. Models with sliding windows or another attention keep
    what they have."""
    config = model.config
    attention = config._attn_implementation
    if attention == "sdpa" and getattr(config, "sliding_window", None) is None:
        config._attn_implementation = CAUSAL
    try:
        yield
    finally:
        config._attn_implementation = attention
