"""The decode step, which samples one token for every lane: forward pass, draw, record, stop. All of it happens on the device;
on a GPU it is a captured graph, which is replayed.

Legend: S slots (the last one is scratch: always finished, one position), n lanes, T tokens that may be sampled, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rlkernel.policy.draw import draw
from rlkernel.policy.slots.cache import SlotCache
from rlkernel.policy.slots.direct import can_decode_directly, logits_of_step


class SlotState:
    """What the decode step reads and writes for every slot."""

    def __init__(self, slots: int, budget: int, device: torch.device) -> None:
        S = slots + 1
        self.token_S = torch.zeros(S, dtype=torch.long, device=device)
        """The last sampled token of each slot, which has no keys and values yet."""
        self.length_S = torch.zeros(S, dtype=torch.int32, device=device)
        """The number of positions that have keys and values."""
        self.count_S = torch.zeros(S, dtype=torch.long, device=device)
        self.budget_S = torch.zeros(S, dtype=torch.long, device=device)
        self.done_S = torch.ones(S, dtype=torch.bool, device=device)
        self.uniform_ST = torch.zeros((S, budget), dtype=torch.float64, device=device)
        self.ids_ST = torch.zeros((S, budget), dtype=torch.long, device=device)
        self.logprob_ST = torch.zeros((S, budget), dtype=torch.float32, device=device)

    def copy_from(self, old: SlotState, slots: Sequence[int]) -> None:
        """Take over `slots` of a state with at most as many tokens, in this order."""
        index = torch.tensor(slots, dtype=torch.long, device=self.token_S.device)
        for name, mine in vars(self).items():
            theirs = getattr(old, name)
            if mine.dim() == 1:
                mine[: len(slots)] = theirs[index]
            else:
                mine[: len(slots), : theirs.shape[1]] = theirs[index]


class DecodeStep:
    """A decode step of one model, one cache and one state. Where any of them changes, a new step is made."""

    def __init__(
        self, model: Any, cache: SlotCache, state: SlotState, stop_V: torch.Tensor, temperature: float, compiled: bool
    ) -> None:
        """stop_V: says of each token whether it ends a completion. compiled: let torch.compile fuse the small operators (GPU)."""
        self.model = model
        self.cache = cache
        self.state = state
        self.stop_V = stop_V
        self.temperature = temperature
        self.scratch = len(state.token_S) - 1
        plain = logits_of_step if can_decode_directly(model) and not cache.kernels and not cache.opaque else _logits
        self._forward: Callable[..., torch.Tensor] = torch.compile(_logits) if compiled else plain
        self._graphed = stop_V.is_cuda
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, torch.Tensor]] = {}
        self._pool: Any = None

    def run(self, slots: Sequence[int], steps: int) -> None:
        """Sample `steps` tokens for every slot that does not finish before. On a GPU, nothing waits for the device."""
        lanes = width(len(slots), self.scratch) if self.cache.kernels else len(slots)
        lane_slots = torch.tensor([*self.cache.in_order(slots), *[self.scratch] * (lanes - len(slots))])
        if not self._graphed:
            for _ in range(steps):
                self.step(lane_slots)
            return
        graph, slot_n = self._graphs.get(lanes) or self._capture(lanes)
        slot_n.copy_(lane_slots)
        for _ in range(steps):
            graph.replay()

    def step(self, slot_n: torch.Tensor) -> None:
        """Sample one token for each lane. slot_n: the slot of each lane, scratch for idle lanes."""
        state = self.state
        length_n = state.length_S[slot_n]
        self.cache.begin_decoding(slot_n, state.length_S)
        ids_n1, position_n1 = state.token_S[slot_n][:, None], length_n[:, None]
        if self.cache.opaque and len(slot_n) > 1:
            # One compilation serves all numbers of lanes.
            for tensor in (ids_n1, position_n1):
                torch._dynamo.maybe_mark_dynamic(tensor, 0)
        logits_nV = self._forward(self.model, self.cache, ids_n1, position_n1)
        state.length_S[slot_n] = length_n + ~state.done_S[slot_n]
        self.emit(slot_n, logits_nV)

    def emit(self, slot_n: torch.Tensor, logits_nV: torch.Tensor) -> None:
        """Draw a token for every slot that is not done, record it, and see whether it is the last."""
        state = self.state
        done_n = state.done_S[slot_n]
        count_n = state.count_S[slot_n]
        at_n = count_n.clamp(max=state.ids_ST.shape[1] - 1)
        ids_n, logprob_n = draw(logits_nV, state.uniform_ST[slot_n, at_n], self.temperature)
        ids_n = torch.where(done_n, state.token_S[slot_n], ids_n)
        state.ids_ST[slot_n, at_n] = torch.where(done_n, state.ids_ST[slot_n, at_n], ids_n)
        state.logprob_ST[slot_n, at_n] = torch.where(done_n, state.logprob_ST[slot_n, at_n], logprob_n)
        count_n = count_n + ~done_n
        state.token_S[slot_n] = ids_n
        state.count_S[slot_n] = count_n
        state.done_S[slot_n] = done_n | self.stop_V[ids_n] | (count_n >= state.budget_S[slot_n])

    def _capture(self, lanes: int) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
        """Capture the graph of a step on the current stream, which must not be the default one. All lanes are scratch meanwhile,
        so that nothing changes."""
        slot_n = torch.full((lanes,), self.scratch, device=self.state.token_S.device)
        for _ in range(3):
            self.step(slot_n)
        torch.cuda.current_stream().synchronize()
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        # thread_local: what the trainer's thread does meanwhile is no part of it, and does not spoil it.
        with torch.cuda.graph(graph, pool=self._pool, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
            self.step(slot_n)
        self._graphs[lanes] = graph, slot_n
        return graph, slot_n


def _logits(model: Any, cache: SlotCache, ids_n1: torch.Tensor, position_n1: torch.Tensor) -> torch.Tensor:
    output = model(input_ids=ids_n1, position_ids=position_n1, past_key_values=cache, use_cache=True, slots=cache)
    logits_nV: torch.Tensor = output.logits[:, -1]
    return logits_nV


def width(active: int, slots: int) -> int:
    """The number of lanes of the smallest graph for so many rows: a power of two, or all slots.

    >>> [width(n, 96) for n in (1, 2, 3, 40, 64, 65, 96)]
    [2, 2, 4, 64, 64, 96, 96]
    """
    lanes = 2
    while lanes < active:
        lanes *= 2
    return min(lanes, max(slots, 2))
