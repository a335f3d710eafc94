"""What makes decoding one token at a time cheap: a cache layer that does not copy, attention that does not repeat.

Legend: B rows, L cached positions, N new positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.masking_utils import sdpa_mask

GROUPED = "rlkernel_grouped_sdpa"


class RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """A cache layer that grows by blocks: `DynamicLayer` copies all keys and values for every token."""

    block = 128
    keys: torch.Tensor
    values: torch.Tensor
    buffer: torch.Tensor

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.adopt(key_states, value_states)
            return self.keys, self.values
        old, new = self.keys.shape[2], key_states.shape[2]
        if old + new > self.buffer.shape[3]:
            self.adopt(self.keys, self.values, room=new)
        self.buffer[0, :, :, old : old + new] = key_states
        self.buffer[1, :, :, old : old + new] = value_states
        self.keys, self.values = self.buffer[:, :, :, : old + new]
        return self.keys, self.values

    def adopt(self, keys: torch.Tensor, values: torch.Tensor, room: int = 0) -> None:
        """Copy keys and values (B, heads, L, size) into a buffer with spare positions."""
        B, heads, L, size = keys.shape
        buffer = keys.new_empty((2, B, heads, L + room + self.block, size))
        buffer[0, :, :, :L], buffer[1, :, :, :L] = keys, values
        self.buffer = buffer
        self.keys, self.values = buffer[:, :, :, :L]


def new_cache(states: list[tuple[torch.Tensor, torch.Tensor]] | None = None) -> DynamicCache:
    """A cache of roomy layers, holding `states` (keys and values per layer) if given."""
    cache = DynamicCache()
    cache.layer_class_to_replicate = RoomyLayer
    for keys, values in states or []:
        layer = RoomyLayer()
        layer.lazy_initialization(keys, values)
        layer.adopt(keys, values)
        cache.layers.append(layer)
    return cache


def _grouped_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Transformers' `sdpa` without the copies: it repeats every cached key and value once per query head for every token.

    For one new position, the query heads that share a key head are as good as several positions (12x faster on 2 cores).
    """
    B, heads, N, size = query.shape
    attend = torch.nn.functional.scaled_dot_product_attention
    if N == 1:
        grouped = query.reshape(B, key.shape[1], heads // key.shape[1], size)
        attended = attend(grouped, key, value, attn_mask=attention_mask, scale=scaling).view(B, heads, 1, size)
    else:
        causal = attention_mask is None
        attended = attend(query, key, value, attn_mask=attention_mask, scale=scaling, is_causal=causal, enable_gqa=True)
    return attended.transpose(1, 2).contiguous(), None


AttentionInterface.register(GROUPED, _grouped_attention)
AttentionMaskInterface.register(GROUPED, sdpa_mask)


SMALL = 20_000_000
"""Parameters below which one token for a batch is too little work to share among threads."""


@contextmanager
def one_thread_if_small(model: Any) -> Iterator[None]:
    """For steps of one token. A second thread would wait more than work, and evaluations need the cores: 32 rows of a million
    parameters took 12.1 ms with one thread and 13.7 ms with two, at twice the CPU time."""
    threads = torch.get_num_threads()
    if model.device.type == "cpu" and model.num_parameters() < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def for_decoding(model: Any) -> Iterator[None]:
    """Evaluation mode and the cheap attention, put back afterwards. Models that use another attention keep theirs."""
    training, attention = model.training, model.config._attn_implementation
    model.eval()
    if attention == "sdpa":
        model.config._attn_implementation = GROUPED
    try:
        yield
    finally:
        model.config._attn_implementation = attention
        model.train(training)
