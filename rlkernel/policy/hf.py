"""A Hugging Face causal language model as a `Policy`: many trajectories wait for `generate`, one worker thread samples.

    trajectory -- generate --> waiting -- join --> engine -- every `chunk` tokens: finished rows --> trajectory

Requests join the batch in flight at the next chunk and leave it when they finish, so no trajectory waits for the longest
completion of a batch. Everything but the sampling itself happens on the event loop.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import torch

from rlkernel.busy import Busy
from rlkernel.config import ENGINES
from rlkernel.errors import UsageError, first_line
from rlkernel.policy import chat
from rlkernel.policy.batched import GenerateEngine
from rlkernel.policy.engine import Engine, Request, Sample
from rlkernel.policy.slots.cache import unsupported
from rlkernel.policy.slots.engine import SlotEngine
from rlkernel.types import Completion

Leases = Callable[[], AbstractAsyncContextManager[None]]
ROUNDINGS = {"auto": None, "bfloat16": torch.bfloat16, "float8": torch.float8_e4m3fn}
"""The type that each of `rlkernel.config.ROLLOUT_DTYPES` rounds weights to; None rounds nothing."""
GATHERED = 2
"""A gathering policy starts a batch once this many trajectories wait for each evaluation in flight."""


class HFPolicy:
    """The policy that `open_policy` opens. `busy` counts the seconds in which the model sampled, `tokens` the sampled tokens."""

    def __init__(
        self,
        tokenizer: Any,
        make_engine: Callable[[], Engine],
        max_new_tokens: int,
        max_positions: int,
        chunk: int,
        gather: Busy | None,
        lease: Leases = nullcontext,
    ) -> None:
        self.busy = Busy()
        self.tokens = 0
        self.max_positions = max_positions
        self.max_new_tokens = max_new_tokens
        self._tokenizer = tokenizer
        self._make_engine = make_engine
        self._engine: Engine | None = None
        self._chunk = chunk
        self._gather = gather
        self._lease = lease
        self._step: int | None = None
        self._next_key = 0
        self._waiting: list[Request] = []
        self._arrived = anyio.Event()
        self._done: dict[int, anyio.Event] = {}
        self._samples: dict[int, Sample] = {}

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        """The tokens of the prompt; see `rlkernel.interfaces.Policy`."""
        return tuple(chat.encode_prompt(self._tokenizer, text))

    def encode_feedback(self, text: str, truncated: bool = False) -> tuple[int, ...]:
        """The tokens of the feedback; see `rlkernel.interfaces.Policy`."""
        return tuple(chat.encode_feedback(self._tokenizer, text, truncated=truncated))

    def refresh(self, step: int | None = None) -> None:
        """Take over the trainer's weights, whenever they have changed. step: the training steps behind them, which every token is
        noted with. Raises RuntimeError while completions are in flight."""
        if self._engine is None:
            self._engine = self._make_engine()
        else:
            self._engine.refresh()
        self._step = step

    async def generate(
        self, prompt_ids: Sequence[int], seed: int, begun: Completion | None = None, tokens: int | None = None
    ) -> Completion | None:
        """Sample one completion of at most `max_new_tokens` tokens; its last token is the stop token, if it stopped.

        None when the context and a completion of full length exceed the model's positions. Log-probabilities are those of
        softmax(logits / temperature) over the whole vocabulary (top_p 1, top_k 0). The keys and values of what was begun are
        computed again, so that every token has the log-probability that its own weights alone give. begun, tokens: see
        `rlkernel.interfaces.Policy`.
        """
        if len(prompt_ids) + self.max_new_tokens > self.max_positions:
            return None
        before = begun or Completion((), (), "", "paused")
        left = self.max_new_tokens - len(before.token_ids)
        budget = left if tokens is None else min(tokens, left)
        sample = await self._sample((*prompt_ids, *before.token_ids), seed, budget, len(before.token_ids))
        ids = before.token_ids + sample.token_ids
        at = () if self._step is None else (self._step,) * len(sample.token_ids)
        stop = "paused" if sample.stop == "length" and budget < left else sample.stop
        text = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return Completion(ids, before.logprobs + sample.logprobs, text, stop, before.sampled_at + at)

    async def _sample(self, context_ids: tuple[int, ...], seed: int, budget: int, drawn: int) -> Sample:
        """Wait for the sample of one request."""
        key, self._next_key = self._next_key, self._next_key + 1
        self._done[key] = anyio.Event()
        self._waiting.append(Request(key, context_ids, seed, budget, drawn))
        self._arrived.set()
        try:
            await self._done[key].wait()
            return self._samples.pop(key)
        finally:
            del self._done[key]

    async def serve(self) -> None:
        """Sample for the requests that wait, until cancelled."""
        while True:
            if self._engine is None or not self._engine.active:
                await self._arrived.wait()
                while self._gather is not None and not self._enough():
                    await self._gather.changed()
                # Let everybody who is ready ask, so that a group starts as one batch.
                await anyio.lowlevel.checkpoint()
            joining: list[Request] = []
            if self._enough():
                joining, self._waiting = self._waiting, []
                self._arrived = anyio.Event()
            async with self._lease():
                with self.busy():
                    finished = await anyio.to_thread.run_sync(self._advance, joining)
            for sample in finished:
                self.tokens += len(sample.token_ids)
                # A trajectory that was cancelled meanwhile has left: its sample is dropped.
                if sample.key in self._done:
                    self._samples[sample.key] = sample
                    self._done[sample.key].set()

    def _advance(self, joining: Sequence[Request]) -> list[Sample]:
        self._engine = self._engine or self._make_engine()
        return self._engine.advance(joining, self._chunk)

    def _enough(self) -> bool:
        """Whether the requests that wait may start."""
        return self._gather is None or GATHERED * self._gather.active <= len(self._waiting)


@asynccontextmanager
async def open_policy(
    model: Any,
    tokenizer: Any,
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    engine: str = "auto",
    slots: int = 128,
    copy: bool = False,
    dtype: str = "auto",
    cache_bytes: int | None = None,
    chunk: int = 32,
    gather: Busy | None = None,
    lease: Leases = nullcontext,
    around: Callable[[Callable[[], Engine]], Engine] | None = None,
) -> AsyncIterator[HFPolicy]:
    """Serve `generate` while the context is open. A failure of the model is ours, and raises out of this context.

    engine: one of `rlkernel.config.ENGINES`. slots: completions sampled at a time. copy: sample from a copy of the weights,
    which only `HFPolicy.refresh` brings up to date; on a GPU always so, unless all weights are bfloat16. dtype: one of
    `rlkernel.config.ROLLOUT_DTYPES`, to which the weights of the copy are rounded; any but auto makes a copy. cache_bytes: the
    most that keys and values may take, see `SlotEngine`. chunk: tokens between two chances to join. gather: the evaluations in
    flight; requests then start only when most trajectories wait. For machines where sampling and evaluating share the cores,
    where overlap gains nothing and a batch costs hardly more than one row. lease: entered around every chunk, where
    the model's device is shared. around: makes another engine of what makes this process's own.
    The engine is made at the first `refresh` or request, where the model is then. Raises
    UsageError when no stop token is known, ValueError for another engine.
    """
    if engine not in ENGINES and ":" not in engine:
        raise ValueError(f"engine is {engine!r}: use one of {', '.join(ENGINES)}, or module:Class")
    max_positions = model.config.get_text_config().max_position_embeddings
    stops = stop_ids(model, tokenizer)

    def make_engine() -> Engine:
        rounding = ROUNDINGS[dtype]
        return open_engine(
            engine, model, stops, temperature, slots=slots, copy=copy, rounding=rounding, cache_bytes=cache_bytes
        )  # fmt: skip

    made = make_engine if around is None else partial(around, make_engine)
    policy = HFPolicy(tokenizer, made, max_new_tokens, max_positions, chunk, gather, lease)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(policy.serve)
        yield policy
        tasks.cancel_scope.cancel()


def open_engine(
    engine: str,
    model: Any,
    stops: frozenset[int],
    temperature: float,
    *,
    slots: int,
    copy: bool,
    rounding: torch.dtype | None = None,
    cache_bytes: int | None = None,
) -> Engine:
    """Make the engine called `engine` for a model. Raises UsageError where `slots` is asked for and cannot hold the model's
    states, and for an engine of somebody's own that cannot be imported."""
    if ":" in engine:
        if rounding is not None:
            raise UsageError(f"Run.rollout_dtype rounds nothing in the engine {engine!r}, which has its own weights: use 'auto'")
        made: Engine = _own_engine(engine)(model, stops, temperature, slots=slots)
        return made
    reason = unsupported(model)
    if engine == "slots" and reason:
        raise UsageError(f"engine 'slots' cannot sample from this model: {reason}; use engine='generate'")
    if engine == "auto" and reason:
        print(f"sampling with `generate`, which is slower than slots: {reason}", file=sys.stderr, flush=True)
    if engine == "generate" or reason:
        return GenerateEngine(model, stops, temperature, slots=slots, copy=copy, rounding=rounding)
    return SlotEngine(model, stops, temperature, slots=slots, copy=copy, rounding=rounding, cache_bytes=cache_bytes)


def _own_engine(name: str) -> Any:
    """The class that `module:Class` names. Raises UsageError where there is none."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"Run.engine is {name!r}, which cannot be imported ({first_line(error)})") from error


def stop_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end an assistant's turn: the tokenizer's and the model's end of sequence, and <|im_end|>.

    Raises UsageError where there is none.
    """
    configured = model.generation_config.eos_token_id if model.generation_config is not None else None
    candidates = [tokenizer.eos_token_id, *(configured if isinstance(configured, list) else [configured])]
    candidates.append(tokenizer.get_vocab().get("<|im_end|>"))
    found = frozenset(token for token in candidates if token is not None)
    if not found:
        raise UsageError("neither the model nor the tokenizer names an end-of-sequence token: set tokenizer.eos_token")
    return found
