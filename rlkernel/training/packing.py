"""Rows of a micro-batch packed one behind the other into a single sequence without padding, and the attention that keeps them
apart.

On a GPU, attention is one kernel that is told where rows begin (torch's flash attention for 16-bit numbers); elsewhere it goes
row by row. Every token has its position in its own row, so that a packed row is computed as if it were alone. Layers other than
attention see single tokens, and need to know nothing.

Legend: B rows, P prompt columns, C completion columns, L = P + C, T packed tokens, S scored tokens, H heads, D head size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface

from rlkernel.policy.slots.cache import unsupported

PACKED = "rlkernel_packed"
"""The name of our attention in Transformers."""
IGNORED = -100
"""The label of a position whose next token is not scored."""


@dataclass(frozen=True)
class Packed:
    """Rows in one sequence."""

    ids_1T: torch.Tensor
    position_1T: torch.Tensor
    """Where each token stands in its own row."""
    label_1T: torch.Tensor
    """The next token of the row where that is scored, else `IGNORED`."""
    bounds: torch.Tensor
    """int32, (B + 1,): row b is at [bounds[b], bounds[b + 1])."""
    longest: int
    """The tokens of the longest row."""
    scored_BC: torch.Tensor
    """bool: the tokens of a completion that are scored."""

    def unpack(self, values_1T: torch.Tensor) -> torch.Tensor:
        """What was found at the position before each scored token, at the token's own place in values_BC, and 0 elsewhere."""
        empty_BC = values_1T.new_zeros(self.scored_BC.shape)
        # Connected to the values even when nothing is scored.
        return empty_BC.masked_scatter(self.scored_BC, values_1T[self.label_1T != IGNORED])


def pack(ids_BL: torch.Tensor, mask_BL: torch.Tensor, scored_BC: torch.Tensor) -> Packed:
    """Pack rows that are padded anywhere. scored_BC: which tokens of the last C columns are wanted; the first token of a row and
    padding never are.

    >>> packed = pack(torch.tensor([[0, 5, 6], [7, 8, 0]]), torch.tensor([[0, 1, 1], [1, 1, 0]]), torch.ones(2, 2))
    >>> packed.ids_1T.tolist(), packed.position_1T.tolist(), packed.label_1T.tolist(), packed.bounds.tolist()
    ([[5, 6, 7, 8]], [[0, 1, 0, 1]], [[6, -100, 8, -100]], [0, 2, 4])
    """
    real_BL = mask_BL.bool()
    length_B = real_BL.sum(1)
    bounds = pad(length_B.cumsum(0), (1, 0))
    position_BL = real_BL.cumsum(1) - 1
    prompt = ids_BL.shape[1] - scored_BC.shape[1]
    scored_BL = pad(scored_BC.bool(), (prompt, 0)) & real_BL & (position_BL > 0)
    ids_T, scored_T = ids_BL[real_BL], scored_BL[real_BL]
    label_T = torch.where(scored_T, ids_T, IGNORED).roll(-1)
    return Packed(
        ids_1T=ids_T[None],
        position_1T=position_BL[real_BL][None],
        label_1T=label_T[None],
        bounds=bounds.int(),
        longest=int(length_B.max()),
        scored_BC=scored_BL[:, prompt:],
    )


def packs(model: Any) -> bool:
    """Whether rows of this model can be packed: all of its layers attend to everything before, through an attention function
    that can be replaced. Other models get their rows one by one, which is a sequence of one row."""
    return model.config._attn_implementation in ("sdpa", PACKED) and unsupported(model) is None


@contextmanager
def packed_attention(model: Any) -> Iterator[None]:
    """Let a model that `packs` keep packed rows apart. Any other keeps the attention that it has."""
    config = model.config
    attention = config._attn_implementation
    if packs(model):
        config._attn_implementation = PACKED
    try:
        yield
    finally:
        config._attn_implementation = attention


def _attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    *,
    row_bounds: torch.Tensor,
    longest_row: int,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attend, in each row, to the tokens before: what Transformers calls in every layer under the name `PACKED`."""
    if value.is_cuda and value.dtype.itemsize == 2 and value.shape[-1] % 8 == 0 and value.shape[-1] <= 256:
        return _flash(query.to(value.dtype), key.to(value.dtype), value, row_bounds, longest_row, dropout, scaling), None
    attended = [
        scaled_dot_product_attention(
            query[:, :, start:end],
            key[:, :, start:end],
            value[:, :, start:end],
            dropout_p=dropout,
            scale=scaling,
            is_causal=True,
            enable_gqa=True,
        )
        for start, end in pairwise(row_bounds.tolist())
    ]
    return torch.cat(attended, 2).transpose(1, 2).contiguous(), None


def _flash(
    query_1HTD: torch.Tensor,
    key_1GTD: torch.Tensor,
    value_1GTD: torch.Tensor,
    bounds: torch.Tensor,
    longest: int,
    dropout: float,
    scaling: float | None,
) -> torch.Tensor:
    """Causal attention in each of the rows at once, (1, T, H, D). The operator is the one that scaled_dot_product_attention
    dispatches to; torch's own `varlen_attn` around it has had another signature in each release."""
    query_THD, key_TGD, value_TGD = (tensor[0].transpose(0, 1) for tensor in (query_1HTD, key_1GTD, value_1GTD))
    attended_THD: torch.Tensor = torch.ops.aten._flash_attention_forward(
        query_THD, key_TGD, value_TGD, bounds, bounds, longest, longest, dropout, True, False, scale=scaling
    )[0]
    return attended_THD[None]


def _no_mask(*args: Any, **kwargs: Any) -> None:
    """The mask function that belongs to `_attention`."""


AttentionInterface.register(PACKED, _attention)
AttentionMaskInterface.register(PACKED, _no_mask)
