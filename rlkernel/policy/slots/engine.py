"""An engine that samples in fixed slots: continuous batching with a preallocated cache.

    queue -- a slot is idle --> prefill (many at a time) --> lanes of the decode step -- stop or length --> idle, states kept

Each row draws from its own random numbers by inverting the cumulative distribution, so that a completion is a function of
the weights, the context and the row's seed, whatever is in flight beside it (up to rounding in the forward pass).
An idle slot keeps its keys and values until another request needs it, the least recently used first: the next turn of the same
trajectory computes only what is new. Equal contexts are computed once. On a GPU the host looks at the slots once per `advance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from rlkernel.errors import UsageError
from rlkernel.policy.blocks import compile_blocks
from rlkernel.policy.engine import Request, Sample, check_idle, check_temperature, uniforms
from rlkernel.policy.replica import Replica, can_share
from rlkernel.policy.slots.cache import SLOTS, SlotCache, bytes_per_position
from rlkernel.policy.slots.decode_step import DecodeStep, SlotState
from rlkernel.policy.slots.decoding import for_decoding, one_thread_if_small
from rlkernel.policy.slots.prefill import PrefillRow, prefill

BLOCK = 128
"""The number of positions of a slot is a multiple of this."""
COMPILED = 30_000_000
"""Compiling a step for half a minute does not pay, in a run of minutes, for a model with fewer parameters than this."""


@dataclass(slots=True)
class _Slot:
    """What the host knows of a slot."""

    request: Request | None = None
    """The request that is sampled in the slot; None for an idle slot."""
    token_ids: tuple[int, ...] = ()
    """The tokens whose keys and values an idle slot holds, or the context of its request."""
    used: int = 0
    """The engine's clock when the slot last became idle; 0 for never."""


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
    ) -> None:
        """
        model: on its device. On a GPU, and with `copy`, the engine has its own copy of the weights (bfloat16 on a GPU); else, and
        without `copy` where all weights are bfloat16, it reads the model's. rounding: see `Replica`; it makes a copy.
        cache_bytes: limit on keys and values, which take at most 60 % of a GPU's free memory, 8 GiB elsewhere; where it is
        reached there are fewer slots. prefill_tokens: tokens of contexts that are computed at a time.
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
        self.look_every = 10**9 if self._on_gpu else 1
        """The number of tokens between two looks of the host at what has finished."""
        self._queue: list[Request] = []
        self._slots: list[_Slot] = []
        self._clock = 0
        self._cache: SlotCache | None = None
        self._step: DecodeStep | None = None

    @property
    def active(self) -> int:
        """The number of requests in slots and of those that wait for one."""
        return len(self._queue) + len(self._running())

    @property
    def free(self) -> int:
        """The number of slots that neither a request nor a waiting one will take."""
        return max(0, (len(self._slots) or self._most) - self.active)

    @property
    def cache_bytes(self) -> int:
        """The bytes that keys and values take now."""
        return 0 if self._cache is None else sum(tensor.nbytes for tensor in (*self._cache.keys, *self._cache.values))

    def refresh(self) -> None:
        """Take over the trainer's weights and forget what idle slots hold; see `Engine.refresh`."""
        check_idle(self)
        if self._replica:
            with self._on_stream(after_others=True):
                self._replica.refresh()
        for slot in self._slots:
            slot.token_ids, slot.used = (), 0

    @torch.no_grad()
    def advance(self, joining: Sequence[Request], tokens: int) -> list[Sample]:
        """Sample about `tokens` tokens in every slot; see `Engine.advance`. A request's first token comes with its prefill,
        beyond `tokens`."""
        self._queue += joining
        with self._on_stream(), for_decoding(self.model, SLOTS):
            self._admit()
            finished = self._collect()
            with one_thread_if_small(self.model):
                while tokens > 0 and (running := self._running()):
                    assert self._step is not None
                    steps = min(tokens, self.look_every, self._longest(running))
                    self._step.run(running, steps)
                    tokens -= steps
                    finished += self._collect()
        return finished

    def _running(self) -> list[int]:
        return [s for s, slot in enumerate(self._slots) if slot.request is not None]

    def _idle(self) -> list[int]:
        """The idle slots; the one to be overwritten next comes first."""
        return sorted((s for s, slot in enumerate(self._slots) if slot.request is None), key=lambda s: self._slots[s].used)

    def _longest(self, running: list[int]) -> int:
        """The number of tokens after which all running slots have finished at the latest, as far as the host knows."""
        if self.look_every == 1:
            return 1
        assert self._step is not None
        left = self._step.state.budget_S - self._step.state.count_S
        return int(left[torch.tensor(running, device=self.device)].max())

    def _admit(self) -> None:
        """Give idle slots to requests, compute their contexts, and draw their first tokens."""
        if not self._queue or not self._make_room():
            return
        idle = self._idle()
        taken, self._queue = self._queue[: len(idle)], self._queue[len(idle) :]
        if not taken:
            return
        groups: dict[tuple[int, ...], list[Request]] = {}
        for request in taken:
            groups.setdefault(request.context_ids, []).append(request)
        kept: dict[tuple[int, ...], int] = {}
        for context in groups:
            if (slot := self._continued(context, idle)) is not None:
                idle.remove(slot)
                kept[context] = slot
        rows = []
        for context, requests in groups.items():
            start = len(self._slots[kept[context]].token_ids) if context in kept else 0
            own = [kept[context]] if context in kept else []
            while len(own) < len(requests):
                own.append(idle.pop(0))
            for slot, request in zip(own, requests, strict=True):
                self._slots[slot] = _Slot(request, context)
            rows.append(PrefillRow(context, start, tuple(own)))
            self._open(own, requests)
        assert self._step is not None
        for slots, logits_nV in prefill(self.model, self._step.cache, rows, self._prefill_tokens):
            self._step.emit(torch.tensor(slots, device=self.device), logits_nV)

    def _continued(self, context: tuple[int, ...], idle: list[int]) -> int | None:
        """The idle slot that holds the longest beginning of the context."""
        best, length = None, 0
        for s in idle:
            held = self._slots[s].token_ids
            n = len(held)
            # The last token is what tells trajectories of one problem apart soonest.
            if length < n < len(context) and context[n - 1] == held[-1] and context[:n] == held:
                best, length = s, n
        return best

    def _open(self, slots: list[int], requests: list[Request]) -> None:
        """Set the state of slots to the beginning of their requests, which have one context."""
        assert self._step is not None
        state, index = self._step.state, torch.tensor(slots, device=self.device)
        state.length_S[index] = len(requests[0].context_ids)
        state.count_S[index] = 0
        state.done_S[index] = False
        state.budget_S[index] = torch.tensor([request.budget for request in requests], device=self.device)
        uniform_nT = torch.zeros((len(slots), state.uniform_ST.shape[1]), dtype=torch.float64)
        for row, request in zip(uniform_nT, requests, strict=True):
            row[: request.budget] = uniforms(request)
        state.uniform_ST[index] = uniform_nT.to(self.device)

    def _collect(self) -> list[Sample]:
        """The samples of the slots that have finished; these slots become idle. Here the host waits for the device."""
        if not (running := self._running()):
            return []
        assert self._step is not None
        state, index = self._step.state, torch.tensor(running, device=self.device)
        done, counts = torch.stack([state.done_S[index].long(), state.count_S[index]]).tolist()
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
            request = self._slots[slot].request
            assert request is not None
            if not bool(logprob_T[:count].isfinite().all()):
                raise FloatingPointError("the model's logits are not finite: its weights may have diverged")
            ids = tuple(ids_T[:count].tolist())
            samples.append(Sample(request.key, ids, tuple(logprob_T[:count].tolist()), "stop" if stopped else "length"))
            self._clock += 1
            # The last sampled token has no keys and values yet.
            self._slots[slot] = _Slot(None, (*request.context_ids, *ids[:-1]), self._clock)
        return samples

    def _make_room(self) -> bool:
        """Make the cache and the state large enough for the requests that wait. False where that must wait until others have
        finished."""
        positions = max(len(request.context_ids) + request.budget for request in self._queue)
        budget = max(request.budget for request in self._queue)
        running, step, cache = self._running(), self._step, self._cache
        if step and cache is not None:
            if positions <= cache.positions and budget <= step.state.ids_ST.shape[1]:
                return True
            budget = max(budget, step.state.ids_ST.shape[1])
            positions = max(positions, cache.positions)
        positions = self._round(positions)
        if cache is not None and positions > cache.positions:
            # Later turns are longer: rather once more than for each of them, if that costs no slots.
            roomy = min(self._round(positions * 3 // 2), self._round(self._config.max_position_embeddings))
            if roomy > positions and self._affordable(roomy) == self._most:
                positions = roomy
        count = self._affordable(positions)
        if count < 1:
            needed = 2 * positions * bytes_per_position(self._config, self._dtype)
            raise UsageError(
                f"{positions} positions take {needed / 2**30:.1f} GiB of keys and values, "
                f"of {self._limit / 2**30:.1f} GiB: use shorter contexts or fewer new tokens"
            )
        if len(running) >= count:
            return False
        stay = sorted(running + self._idle()[::-1][: count - len(running)])
        state = SlotState(count, budget, self.device)
        if step:
            state.copy_from(step.state, stay)
        self._step = step = None  # captured graphs go before the memory that they read
        if cache is not None:
            cache.resize(positions, count, stay)
        else:
            kinds = {"kernels": self._kernels, "opaque": self._compiled}
            self._cache = cache = SlotCache(self._config, count, positions, self._dtype, self.device, **kinds)
        self._slots = [self._slots[s] for s in stay] + [_Slot() for _ in range(count - len(stay))]
        self._step = DecodeStep(self.model, cache, state, self._stop_V, self.temperature, self._compiled)
        return True

    def _round(self, positions: int) -> int:
        return -(-positions // BLOCK) * BLOCK

    def _affordable(self, positions: int) -> int:
        """The number of slots of so many positions that fit into memory beside the scratch slot. The limit is found once, before
        the cache takes memory."""
        if self._cache is None:
            found = int(_free_bytes(self.device) * 0.6) if self._on_gpu else 2**33
            self._limit = min(found, found if self._given is None else self._given)
        return min(self._most, self._limit // (positions * bytes_per_position(self._config, self._dtype)) - 1)

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
