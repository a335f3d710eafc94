"""Sampling from a causal language model with rows that join and leave between tokens.

Legend: B rows in flight, L columns of the cache (each row masks the ones it does not own), N new columns, V vocabulary.

Each row draws from its own random numbers by inverting the cumulative distribution, so that a completion is a function of
the weights, the context and the row's seed, whatever shares its batch (up to rounding in the forward pass).
A finished row's keys and values are parked: the next turn of the same trajectory computes only what is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.functional import pad
from transformers import DynamicCache

from rlkernel.policy.decoding import for_decoding, new_cache, one_thread_if_small
from rlkernel.types import StopReason

States = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of one row per layer, each (heads, tokens, size)."""


@dataclass(frozen=True, slots=True)
class Request:
    """`budget`: tokens that may be sampled, at least 1."""

    key: int
    context_ids: tuple[int, ...]
    seed: int
    budget: int


@dataclass(frozen=True, slots=True)
class Sample:
    """`logprobs`: of each token under softmax(logits / temperature), untruncated."""

    key: int
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop: StopReason


@dataclass(slots=True)
class _Row:
    request: Request
    uniforms: torch.Tensor
    """One number in [0, 1) for each token that may be sampled."""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    done: bool = False


class Sampler:
    """Not safe for concurrent use. After the weights change, call `forget` before the next request."""

    def __init__(self, model: Any, stop_ids: frozenset[int], temperature: float, parked_bytes: int = 2**30) -> None:
        """parked_bytes: limit on the keys and values kept between turns. Raises ValueError unless temperature > 0."""
        if temperature <= 0:
            raise ValueError(f"temperature is {temperature}: it must be positive, since log-probabilities are recorded")
        self.model = model
        self.stop_ids = stop_ids
        self.temperature = temperature
        self.parked_bytes = parked_bytes
        self.rows: list[_Row] = []
        self._parked: dict[tuple[int, ...], States] = {}

    def forget(self) -> None:
        """Drop what was computed with earlier weights. Raises RuntimeError while rows are in flight."""
        if any(not row.done for row in self.rows):
            raise RuntimeError("the weights may not change while completions are being sampled")
        self.rows = []
        self._parked = {}

    @property
    def active(self) -> int:
        return sum(not row.done for row in self.rows)

    @torch.no_grad()
    def advance(self, joining: Sequence[Request], tokens: int) -> list[Sample]:
        """Admit rows, sample at most `tokens` tokens for every row in flight, and return the rows that finished."""
        with for_decoding(self.model):
            if joining:
                self._compact()
                self._join(joining)
            finished: list[Sample] = []
            with one_thread_if_small(self.model):
                for _ in range(tokens):
                    if not self.active:
                        break
                    finished += self._step()
            return finished

    def _join(self, joining: Sequence[Request]) -> None:
        rows = [_Row(request, _uniforms(request)) for request in joining]
        cache, mask_BL, logits_BV = self._prefill([request.context_ids for request in joining])
        if not self.rows:
            self.rows, self._cache, self._mask_BL, self._logits_BV = rows, cache, mask_BL, logits_BV
            return
        length = max(mask_BL.shape[1], self._mask_BL.shape[1])
        for mine, other in zip(self._cache.layers, cache.layers, strict=True):
            mine.adopt(
                torch.cat([_left_pad(mine.keys, length), _left_pad(other.keys, length)]),
                torch.cat([_left_pad(mine.values, length), _left_pad(other.values, length)]),
            )
        self._mask_BL = torch.cat([pad(mask, (length - mask.shape[1], 0)) for mask in (self._mask_BL, mask_BL)])
        self._logits_BV = torch.cat([self._logits_BV, logits_BV])
        self.rows += rows

    def _prefill(self, contexts: Sequence[tuple[int, ...]]) -> tuple[DynamicCache, torch.Tensor, torch.Tensor]:
        """Cache, mask_BL and logits_BV of the contexts; what is parked, and equal contexts, are computed once."""
        device = self.model.device
        unique = list(dict.fromkeys(contexts))
        known = [self._take_parked(context) for context in unique]
        news = [context[n:] for context, (n, _) in zip(unique, known, strict=True)]
        old_width, new_width = max(n for n, _ in known), max(len(new) for new in news)
        ids_BN = torch.tensor([(0,) * (new_width - len(new)) + new for new in news], device=device)
        mask_BL = torch.zeros((len(unique), old_width + new_width), dtype=torch.long)
        for b, ((n, _), new) in enumerate(zip(known, news, strict=True)):
            mask_BL[b, old_width - n : old_width] = 1
            mask_BL[b, old_width + new_width - len(new) :] = 1
        mask_BL = mask_BL.to(device)
        position_BL = (mask_BL.cumsum(1) - 1).clamp(min=0)
        cache = new_cache(_stack([states for _, states in known], old_width))
        logits_BV = self._forward(ids_BN, mask_BL, position_BL[:, old_width:], cache)
        if len(unique) == len(contexts):
            return cache, mask_BL, logits_BV
        index_B = torch.tensor([unique.index(context) for context in contexts], device=device)
        for layer in cache.layers:
            layer.adopt(layer.keys[index_B], layer.values[index_B])
        return cache, mask_BL[index_B], logits_BV[index_B]

    def _forward(
        self, ids_BN: torch.Tensor, mask_BL: torch.Tensor, position_BN: torch.Tensor, cache: DynamicCache
    ) -> torch.Tensor:
        """Logits of the last position, divided by the temperature, float32."""
        logits_BNV: torch.Tensor = self.model(
            input_ids=ids_BN,
            attention_mask=mask_BL,
            position_ids=position_BN,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        return logits_BNV[:, -1].float() / self.temperature

    def _step(self) -> list[Sample]:
        """One token for every row; finished rows ride along unrecorded until enough of them can be dropped together."""
        logprobs_BV = self._logits_BV.log_softmax(-1)
        # float64: the cumulative sum over a large vocabulary loses too much in float32.
        cdf_BV = logprobs_BV.double().exp().cumsum(-1)
        u_B = torch.tensor([0.0 if row.done else row.uniforms[len(row.token_ids)] for row in self.rows], dtype=torch.float64)
        ids_B1 = torch.searchsorted(cdf_BV, (u_B.to(cdf_BV.device) * cdf_BV[:, -1])[:, None], right=True)
        logprobs_B = logprobs_BV.gather(1, ids_B1)[:, 0].tolist()
        finished = []
        for b, (row, token, logprob) in enumerate(zip(self.rows, ids_B1[:, 0].tolist(), logprobs_B, strict=True)):
            if row.done:
                continue
            row.token_ids.append(token)
            row.logprobs.append(logprob)
            stopped = token in self.stop_ids
            if stopped or len(row.token_ids) == row.request.budget:
                row.done = True
                self._park(b)
                reason: StopReason = "stop" if stopped else "length"
                finished.append(Sample(row.request.key, tuple(row.token_ids), tuple(row.logprobs), reason))
        if 4 * self.active <= 3 * len(self.rows):
            ids_B1 = ids_B1[self._compact()]
        if self.rows:
            position_B1 = self._mask_BL.sum(1, keepdim=True)
            self._mask_BL = pad(self._mask_BL, (0, 1), value=1)
            self._logits_BV = self._forward(ids_B1, self._mask_BL, position_B1, self._cache)
        return finished

    def _compact(self) -> torch.Tensor:
        """Drop finished rows, and the columns that only they needed. Returns the indices of the rows that stay."""
        keep = [b for b, row in enumerate(self.rows) if not row.done]
        index_B = torch.tensor(keep, dtype=torch.long, device=self.model.device)
        if len(keep) < len(self.rows):
            self.rows = [self.rows[b] for b in keep]
            self._mask_BL = self._mask_BL[index_B]
            self._logits_BV = self._logits_BV[index_B]
            columns_L = self._mask_BL.any(0).nonzero()[:, 0]
            self._mask_BL = self._mask_BL[:, columns_L]
            for layer in self._cache.layers if keep else ():
                layer.adopt(layer.keys[index_B][:, :, columns_L], layer.values[index_B][:, :, columns_L])
        return index_B

    def _park(self, b: int) -> None:
        """Keep row b's keys and values; the last sampled token has none yet."""
        row = self.rows[b]
        columns_L = self._mask_BL[b].nonzero()[:, 0]
        states = [(layer.keys[b][:, columns_L], layer.values[b][:, columns_L]) for layer in self._cache.layers]
        size = sum(keys.nbytes + values.nbytes for keys, values in states)
        held = sum(keys.nbytes + values.nbytes for other in self._parked.values() for keys, values in other)
        if held + size <= self.parked_bytes:
            self._parked[(*row.request.context_ids, *row.token_ids[:-1])] = states

    def _take_parked(self, context_ids: tuple[int, ...]) -> tuple[int, States]:
        """The longest parked beginning of the context: its length, and its keys and values."""
        for n in sorted({len(ids) for ids in self._parked if len(ids) < len(context_ids)}, reverse=True):
            if (states := self._parked.pop(context_ids[:n], None)) is not None:
                return n, states
        return 0, []


def _uniforms(request: Request) -> torch.Tensor:
    generator = torch.Generator().manual_seed(request.seed)
    return torch.rand(request.budget, generator=generator, dtype=torch.float64)


def _stack(rows: list[States], width: int) -> States:
    """Left-pad every row's states to `width` and stack them to (B, heads, width, size) per layer; [] if nobody has any."""
    example = next((states for states in rows if states), None)
    if example is None:
        return []
    stacked = []
    for layer, (some_keys, some_values) in enumerate(example):
        keys, values = (
            torch.stack(
                [
                    _left_pad(states[layer][part], width) if states else like.new_zeros((like.shape[0], width, like.shape[2]))
                    for states in rows
                ]
            )
            for part, like in enumerate((some_keys, some_values))
        )
        stacked.append((keys, values))
    return stacked


def _left_pad(states: torch.Tensor, length: int) -> torch.Tensor:
    """(..., tokens, size) to tokens = length; the mask hides what is added."""
    return pad(states, (0, 0, length - states.shape[-2], 0))
