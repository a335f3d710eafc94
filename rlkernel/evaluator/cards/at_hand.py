"""The configuration that suits the cards at hand: their memory, their profile, and whether somebody else uses them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread
import torch

from rlkernel.evaluator.cards import card_profile, gpus
from rlkernel.evaluator.cards.gpu_runner import GpuRunner
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.devices import OF_THE_CARD

MEMORY_SHARE = 0.94
"""The share of a card's memory that evaluations may take; the rest is for contexts, libraries and the driver."""
UNKNOWN_MEMORY = 16 << 30
"""The bytes that evaluations may take of a card whose driver does not tell its memory."""


def own_pids(runner: GpuRunner, shared: bool) -> frozenset[int]:
    """Return the ids of our processes that may hold the runner's card, with those that a referee has forked, and the trainer
    processes that this one has started."""
    forked = {child for pid in runner.pids for child in _children(pid)}
    return runner.pids | forked | ({os.getpid()} | _children(os.getpid()) if shared else set())


def _children(pid: int) -> set[int]:
    """Return the ids of a process's children; none where it has ended, or where the kernel does not tell."""
    try:
        return {int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    except OSError:
        return set()


def runner_memory(card: gpus.Gpu, config: EvaluatorConfig, *, shared: bool) -> int:
    """Return the bytes that evaluations may take of a card: what the limit says, else all but a share for the driver, and at most
    half of a shared card. The runner takes no more than is free when it starts."""
    if not card.memory_bytes:
        return config.limits.gpu_memory_bytes or UNKNOWN_MEMORY
    limit = config.limits.gpu_memory_bytes or int(MEMORY_SHARE * card.memory_bytes)
    return min(limit, card.memory_bytes // 2) if shared else limit


async def not_idle(cards: Sequence[gpus.Gpu], shared: str | None) -> list[str]:
    """Return a line for each card that somebody else uses or that is throttled, in the cards' order."""
    lines: dict[str, str] = {}
    own = {os.getpid()} if torch.cuda.is_initialized() else set()  # type: ignore[no-untyped-call]

    async def ask(card: gpus.Gpu) -> None:
        try:
            why = await anyio.to_thread.run_sync(gpus.wait_idle, card, own if card.uuid == shared else ())
        except gpus.GpuUnavailable as error:
            why = str(error)
        if why is not None:
            lines[card.uuid] = f"cuda:{card.index} ({card.name}) is not idle, so times may be wrong: {why}"

    async with anyio.create_task_group() as tasks:
        for card in cards:
            tasks.start_soon(ask, card)
    return [lines[card.uuid] for card in cards if card.uuid in lines]


def for_cards(config: EvaluatorConfig, cards: Sequence[gpus.Gpu], shared: str | None) -> EvaluatorConfig:
    """Return `config` with the memory of the smallest card and the profile of the cards' model, if that has a name; without a
    seed, since times are measured.

    Raises ValueError for cards of several kinds, and for one on which nothing can be judged.
    """
    kinds = {named.name if (named := gpus.profile(card)) else card.name for card in cards}
    if len(kinds) > 1:
        raise ValueError(f"the GPUs differ ({', '.join(sorted(kinds))}): choose one with cuda:N")
    named = None if config.profile == OF_THE_CARD else gpus.profile(cards[0])
    if named is None:
        card_profile.check(cards[0])
    memory = min(runner_memory(card, config, shared=card.uuid == shared) for card in cards)
    limits = replace(config.limits, gpu_memory_bytes=memory)
    return replace(config, profile=OF_THE_CARD if named is None else named.text, seed=None, limits=limits)


async def with_measured_profile(config: EvaluatorConfig, runners: Sequence[GpuRunner], cache_dir: Path | None) -> EvaluatorConfig:
    """Return `config` with a profile that is made of the card, if no name stands for it. Cards of one kind share the first's."""
    if config.profile != OF_THE_CARD:
        return config
    if not runners:
        raise ValueError(f"profile {OF_THE_CARD!r} is that of a GPU, and there is none: use a named one")
    store = card_profile.RateStore(cache_dir / "cards.jsonl" if cache_dir is not None else None)
    return replace(config, profile=(await card_profile.measured_profile(runners[0], store)).text)
