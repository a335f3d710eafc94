"""Whether a run has problems, and fits into the memory of its card, or of this machine: asked before anything is loaded."""

from __future__ import annotations

from typing import Any

import torch
from rich.console import Console

from rlkernel.config import Run
from rlkernel.errors import UsageError
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.config import GIB, EvaluatorConfig, Limits
from rlkernel.policy.load import load_config, meta_model
from rlkernel.training import draws
from rlkernel.training.machine import memory_bytes
from rlkernel.training.memory import MICRO_TOKENS, Demand, MemoryPlan, demand_of
from rlkernel.training.memory_table import advice, memory_table
from rlkernel.training.memory_ways import CARDS, Room, as_flags, as_settings, ways
from rlkernel.training.placement import CONTEXT_BYTES, Placement, place, side_by_side


def check_problems(run: Run) -> None:
    """Raise UsageError for a run without problems to train on or to measure on, and whose sampler cannot draw a step of them."""
    for split in ("train", "validation"):
        if not any(problem.split == split for problem in run.problems):
            raise UsageError(f"Run.problems of {run.name!r} has none with split {split!r}: add one")
    draws.check(run)


def check_device(device: str) -> None:
    """Raise UsageError for a device of a run that this machine has not."""
    _place(device)


def check_memory(run: Run, micro_tokens: int = MICRO_TOKENS) -> None:
    """Print the table of a run that does not fit on standard error, and raise UsageError."""
    demand, room, model = demand_of(run), room_here(run.device, run.evaluation_gib), meta_model(load_config(run.model))
    found = room.plan(demand, model, micro_tokens)
    if not found.fits:
        Console(stderr=True, width=100).print(memory_table(found))
        raise UsageError(advice(found, list(map(as_settings, ways(demand, model, room, micro_tokens)))))


def plan_here(run: Run, config: Any, micro_tokens: int = MICRO_TOKENS) -> MemoryPlan:
    """The memory of a run on this machine, of a model with this configuration. Raises UsageError for a device that it has not."""
    return room_here(run.device, run.evaluation_gib).plan(demand_of(run), meta_model(config), micro_tokens)


def plan_demand(demand: Demand, room: Room) -> tuple[MemoryPlan, list[str]]:
    """The memory of a run that does not exist yet, and, where it does not fit, flags of `rlkernel doctor` with which it does."""
    model = meta_model(load_config(demand.model))
    found = room.plan(demand, model)
    return found, [] if found.fits else list(map(as_flags, ways(demand, model, room)))


def room_here(device: str, evaluation_gib: int, said: str = "Run.device") -> Room:
    """What a policy has of this machine beside evaluations on `device`. said: how that was written. Raises UsageError for a
    device that it has not."""
    placement = _place(device, said)
    limit, others = _own(placement, evaluation_gib)
    if not limit:
        return Room(machine_bytes(), gpu=False)
    return _room(placement, limit, others, 0 if side_by_side() > 1 else torch.cuda.device_count())


def room_of_card(card_gib: float, evaluation_gib: int) -> Room:
    """The same for a card of that size which is not here and which evaluations share."""
    placement = Placement("cuda:0", Gpu(0, "GPU-0", "", int(card_gib * GIB), ""), shared=True)
    return _room(placement, *_own(placement, evaluation_gib), CARDS)


def room_of_policy(gib: float) -> Room:
    """The same for a card that is not here and of which the policy has so much."""
    return Room(int(gib * GIB), gpu=True, piece_bytes=int(gib * GIB), cards=CARDS)


def _room(placement: Placement, limit: int, others: str, cards: int) -> Room:
    assert placement.card is not None
    beside = (lambda gib: _own(placement, gib)[0]) if placement.shared else None
    return Room(limit, True, others, beside, placement.card.memory_bytes - CONTEXT_BYTES, cards)


def _place(device: str, said: str = "Run.device") -> Placement:
    try:
        return place(device)
    except ValueError as error:
        raise UsageError(f"{said}: {error}") from error


def _own(placement: Placement, evaluation_gib: int) -> tuple[int, str]:
    """The bytes of its card that a policy may take, and who has the rest, in words; 0 where it is on the CPU."""
    own = placement.own_bytes(EvaluatorConfig(limits=Limits(gpu_memory_bytes=evaluation_gib * GIB)))
    if placement.card is None:
        return own, ""
    runs = side_by_side()
    rest, parts = placement.card.memory_bytes - own * runs, []
    if placement.shared:
        parts.append(f"evaluations and CUDA have {rest / GIB:.0f} GiB of the card")
    if runs > 1:
        other = "the other run has" if runs == 2 else f"{runs - 1} other runs have"
        parts.append(f"{other} {own * (runs - 1) / GIB:.0f} GiB{'' if parts else ' of the card'}")
    return own, " and ".join(parts)


def machine_bytes() -> int:
    """The bytes of this machine's memory, or an equal part of them where runs train side by side."""
    return memory_bytes() // side_by_side()
