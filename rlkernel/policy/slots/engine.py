"""An engine that samples in fixed slots: continuous batching with a preallocated cache.

    queue -- a slot is idle, there are pages --> prefill (many at a time) --> lanes of the decode step -- stop or length --> idle,
      ^                                                                         |                                            kept
      '------------------------- there are no more pages -----------------------'

Each row draws from its own random numbers by inverting the cumulative distribution, so that a completion is a function of
the weights, the context and the row's seed, whatever is in flight beside it (up to rounding in the forward pass).
An idle slot keeps its keys and values until another request needs it or its pages, the least recently used first: the next turn
of the same trajectory computes only what is new. Equal contexts are computed once. A slot gets pages as it goes on; where there
are no more, the completion that was begun last gives way: it waits in the queue, and goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from rlkernel.errors import UsageError
from rlkernel.policy.blocks import compile_blocks
from rlkernel.policy.engine import Request, Sample, check_idle, check_temperature, uniforms
from rlkernel.policy.replica import Replica, can_share
from rlkernel.policy.slots.cache import SLOTS, SlotCache, bytes_per_position
from rlkernel.policy.slots.decode_step import DecodeStep, SlotState
from rlkernel.policy.slots.decoding import for_decoding, one_thread_if_small
from rlkernel.policy.slots.occupancy import Occupancy
from rlkernel.policy.slots.pages import Growth
from rlkernel.policy.slots.prefill import prefill

BLOCK = 128
"""The number of positions of a slot is a multiple of this; on a GPU also that of a page."""
LOOK_EVERY = 16
"""The number of tokens between two looks at what has finished, on a GPU."""
ADMITTED = 8
"""Requests that wait are admitted while others decode as soon as one of so many slots is idle."""
COMPILED = 30_000_000
"""Compiling a step for half a minute does not pay, in a run of minutes, for a model with fewer parameters than this."""


class SlotEngine:
    """An `rlkernel.policy.engine.Engine` with continuous batching; the module says how it works."""

    def __init__(
        self,
        model: Any,
        stop_ids: frozenset[int],
        temperature: float,
        *,
        slots: int = 128,
        copy: bool = False,
        rounding: torch.dtype | None = None,
        compiled: bool | None = None,
        kernels: bool | None = None,
        cache_bytes: int | None = None,
        prefill_tokens: int | None = None,
        page: int | None = None,
    ) -> None:
        """
        model: on its device. On a GPU, and with `copy`, the engine has its own copy of the weights (bfloat16 on a GPU); else, and
        without `copy` where all weights are bfloat16, it reads the model's. rounding: see `Replica`; it makes a copy.
        cache_bytes: limit on keys and values, which take at most 60 % of a GPU's free memory, 8 GiB elsewhere; where it is
        reached fewer are sampled at a time. prefill_tokens: tokens of contexts that are computed at a time. page: positions of a
        page, by default `BLOCK` on a GPU, and elsewhere those of a whole slot.
        compiled: fuse the small operators of a decode step with torch.compile, by default on a GPU for models from `COMPILED`
        parameters on; kernels: attend with Triton, on a GPU by default. Raises ValueError unless temperature > 0.
        """
        check_temperature(temperature)
        self.device = torch.device(model.device)
        self._on_gpu = self.device.type == "cuda"
        dtype = torch.bfloat16 if self._on_gpu else model.dtype
        self._stream = torch.cuda.Stream(self.device) if self._on_gpu else None  # type: ignore[no-untyped-call]
        with self._on_stream(after_others=True):
            shared = can_share(model) and not copy and rounding is None
            own = copy or self._on_gpu or rounding is not None or shared
            trained = self._on_gpu and not shared
            replica = Replica(model, self.device, dtype, as_trained=trained, rounding=rounding, shared=shared) if own else None
            self._replica = replica
            self.model = self._replica.model if self._replica else model
            self._stop_V = torch.zeros(model.config.get_text_config().vocab_size, dtype=torch.bool, device=self.device)
            self._stop_V[[token for token in sorted(stop_ids) if token < len(self._stop_V)]] = True
        self.temperature = temperature
        self._config = self.model.config.get_text_config()
        self._dtype = dtype
        large = model.num_parameters() >= COMPILED
        self._compiled = self._on_gpu and large if compiled is None else compiled
        if self._compiled and self._replica:
            compile_blocks(self.model)  # for contexts; a decode step is compiled as a whole
        self._kernels = self._on_gpu if kernels is None else kernels
        self._most = slots
        self._given, self._limit = cache_bytes, 0
        self._prefill_tokens = prefill_tokens or (16384 if self._on_gpu else 4096)
        self.look_every = LOOK_EVERY if self._on_gpu else 1
        """The number of tokens between two looks of the host at what has finished."""
        size = page or (BLOCK if self._on_gpu else None)
        self._growth = Growth(slots, size, BLOCK, int(self._config.max_position_embeddings))
        self._queue: list[Request] = []
        self._begun: dict[int, tuple[tuple[int, ...], tuple[float, ...]]] = {}
        """The tokens, with log-probabilities, that requests had when they last gave way, by keys."""
        self._held = Occupancy(slots)
        self._cache: SlotCache | None = None
        self._step: DecodeStep | None = None

    @property
    def active(self) -> int:
        """The number of requests in slots and of those that wait for one."""
        return len(self._queue) + len(self._held.running())

    @property
    def free(self) -> int:
        """The number of slots that neither a request nor a waiting one will take."""
        slots = min(self._most, self._cache.room.pages) if self._cache is not None else self._most
        return max(0, slots - self.active)

    @property
    def cache_bytes(self) -> int:
        """The bytes that keys and values take now."""
        return 0 if self._cache is None else self._cache.nbytes

    def refresh(self) -> None:
        """Take over the trainer's weights and forget what idle slots hold; see `Engine.refresh`."""
        check_idle(self)
        if self._replica:
            with self._on_stream(after_others=True):
                self._replica.refresh()
        for slot in range(self._most):
            self._held.vacate(slot)

    @torch.no_grad()
    def advance(self, joining: Sequence[Request], tokens: int) -> list[Sample]:
        """Sample about `tokens` tokens in every slot; see `Engine.advance`. A request's first token comes with its prefill,
        beyond `tokens`."""
        self._queue += joining
        with self._on_stream(), for_decoding(self.model, SLOTS), one_thread_if_small(self.model):
            self._admit()
            finished = self._collect()
            while tokens > 0 and self._held.running():
                steps = min(tokens, self.look_every, self._held.longest())
                self._reserve(steps)
                assert self._step is not None
                self._step.run(self._held.running(), steps)
                tokens -= steps
                finished += self._collect()
                # Computing few contexts takes as long as some steps of all others: not for a single slot.
                if self._queue and ADMITTED * len(self._held.idle()) >= self._most:
                    self._admit()
                    finished += self._collect()
        return finished

    def _admit(self) -> None:
        """Give idle slots to requests, compute their contexts, and draw their first tokens."""
        if not self._queue or not self._make_room():
            return
        taken = self._held.affordable(self._queue)
        requests, self._queue = self._queue[:taken], self._queue[taken:]
        if not requests:
            return
        assert self._step is not None and self._cache is not None
        rows = self._held.assign(requests)
        self._open([slot for row in rows for slot in row.slots])
        self._cache.write(self._held.provide({slot: len(row.token_ids) + 1 for row in rows for slot in row.slots}))
        for slots, logits_nV in prefill(self.model, self._cache, rows, self._prefill_tokens):
            self._step.emit(torch.tensor(slots, device=self.device), logits_nV)

    def _open(self, slots: list[int]) -> None:
        """Set the state of slots to the beginning of their requests."""
        assert self._step is not None
        state, index = self._step.state, torch.tensor(slots, device=self.device)
        requests = [self._held.request(slot) for slot in slots]
        state.length_S[index] = torch.tensor([len(r.context_ids) for r in requests], dtype=torch.int32, device=self.device)
        state.count_S[index] = 0
        state.done_S[index] = False
        state.budget_S[index] = torch.tensor([request.budget for request in requests], device=self.device)
        uniform_nT = torch.zeros((len(slots), state.uniform_ST.shape[1]), dtype=torch.float64)
        for row, request in zip(uniform_nT, requests, strict=True):
            row[: request.budget] = uniforms(request)
        state.uniform_ST[index] = uniform_nT.to(self.device)

    def _reserve(self, steps: int) -> None:
        """Give running slots the pages for so many tokens more. Those that were begun last give way where there are too few."""
        assert self._cache is not None
        while not self._held.enough(self._held.positions(steps)):
            self._give_way(self._held.last())
        self._cache.write(self._held.provide(self._held.positions(steps)))

    def _give_way(self, slot: int) -> None:
        """Put the request of a slot back to the head of the queue, with what it has sampled as a part of its context."""
        request, count = self._held.request(slot), self._held.slots[slot].count
        assert self._step is not None
        state = self._step.state
        ids, logprobs = state.ids_ST[slot, :count].tolist(), state.logprob_ST[slot, :count].tolist()
        earlier_ids, earlier_logprobs = self._begun.get(request.key, ((), ()))
        self._begun[request.key] = (*earlier_ids, *ids), (*earlier_logprobs, *logprobs)
        context, drawn = (*request.context_ids, *ids), request.drawn + count
        self._queue.insert(0, Request(request.key, context, request.seed, request.budget - count, drawn))
        self._held.vacate(slot)

    def _collect(self) -> list[Sample]:
        """The samples of the slots that have finished; these slots become idle. Here the host waits for the device."""
        if not (running := self._held.running()):
            return []
        assert self._step is not None
        state, index = self._step.state, torch.tensor(running, device=self.device)
        done, counts = torch.stack([state.done_S[index].long(), state.count_S[index]]).tolist()
        for slot, count in zip(running, counts, strict=True):
            self._held.slots[slot].count = count
        ended = [(slot, count) for slot, is_done, count in zip(running, done, counts, strict=True) if is_done]
        if not ended:
            return []
        index = torch.tensor([slot for slot, _ in ended], device=self.device)
        ids_nT, logprob_nT, stopped_n = (
            state.ids_ST[index].cpu(),
            state.logprob_ST[index].cpu(),
            self._stop_V[state.token_S[index]],
        )
        samples = []
        for (slot, count), ids_T, logprob_T, stopped in zip(ended, ids_nT, logprob_nT, stopped_n.tolist(), strict=True):
            request = self._held.request(slot)
            if not bool(logprob_T[:count].isfinite().all()):
                raise FloatingPointError("the model's logits are not finite: its weights may have diverged")
            ids = tuple(ids_T[:count].tolist())
            earlier_ids, earlier_logprobs = self._begun.pop(request.key, ((), ()))
            logprobs = (*earlier_logprobs, *logprob_T[:count].tolist())
            samples.append(Sample(request.key, (*earlier_ids, *ids), logprobs, "stop" if stopped else "length"))
            # The last sampled token has no keys and values yet.
            self._held.finish(slot, (*request.context_ids, *ids[:-1]))
        return samples

    def _make_room(self) -> bool:
        """Make the cache and the state large enough for the requests that wait. False where that must wait until others have
        finished."""
        cache, step = self._cache, self._step
        longest = max(len(request.context_ids) + request.budget for request in self._queue)
        budget = max(request.budget for request in self._queue)
        limit, each = self._limit_bytes(), bytes_per_position(self._config, self._dtype)
        room = self._growth.room(cache.room if cache is not None else None, longest, limit // each)
        if room.needed(longest) > room.pages:
            positions = room.needed(longest) * room.size
            raise UsageError(
                f"{positions} positions take {(positions + room.size) * each / 2**30:.1f} GiB of keys and values, "
                f"of {limit / 2**30:.1f} GiB: use shorter contexts or fewer new tokens"
            )
        if cache is not None and step is not None:
            if room == cache.room and budget <= step.state.ids_ST.shape[1]:
                return True
            if room.pages < cache.room.pages and len(self._held.running()) >= room.pages:
                return False
            budget = max(budget, step.state.ids_ST.shape[1])
        state = SlotState(self._most, budget, self.device)
        if step is not None:
            state.copy_from(step.state, range(self._most))
        self._step = step = None  # captured graphs go before the memory that they read
        if cache is None:
            kinds = {"kernels": self._kernels, "opaque": self._compiled}
            self._cache = cache = SlotCache(self._config, self._most, room, self._dtype, self.device, **kinds)
            self._held.pages = cache.pages
        elif room != cache.room:
            self._held.shrink(room.pages)
            cache.resize(room)
        self._step = DecodeStep(self.model, cache, state, self._stop_V, self.temperature, self._compiled)
        return True

    def _limit_bytes(self) -> int:
        """The bytes that the cache may take, found once, before it takes any."""
        if self._cache is None:
            found = int(_free_bytes(self.device) * 0.6) if self._on_gpu else 2**33
            self._limit = min(found, found if self._given is None else self._given)
        return self._limit

    @contextmanager
    def _on_stream(self, after_others: bool = False) -> Iterator[None]:
        """Work on a stream of our own, so that a trainer's work beside it goes on, and wait for it at the end. after_others: what
        was asked of the GPU before is done first."""
        if self._stream is None:
            yield
            return
        with torch.cuda.device(self.device):
            if after_others:
                self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                yield
                self._stream.synchronize()


def _free_bytes(device: torch.device) -> int:
    """The bytes that this process may still take of a GPU, which it may share (`rlkernel.training.placement`)."""
    free, total = torch.cuda.mem_get_info(device)
    allowed = int(torch.cuda.get_per_process_memory_fraction(device) * total) - torch.cuda.memory_reserved(device)
    return min(free, allowed)
