"""Whether a run has problems, and fits into the memory of its card, or of this machine: asked before anything is loaded."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from rlkernel.config import Run
from rlkernel.errors import UsageError
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.config import GIB, EvaluatorConfig, Limits
from rlkernel.policy.load import load_config
from rlkernel.training.machine import memory_bytes
from rlkernel.training.memory import MICRO_TOKENS, Demand, MemoryPlan, demand_of, plan
from rlkernel.training.memory_table import advice, memory_table
from rlkernel.training.placement import Placement, place, side_by_side


def check_problems(run: Run) -> None:
    """Raise UsageError for a run without problems to train on or to measure on."""
    for split in ("train", "validation"):
        if not any(problem.split == split for problem in run.problems):
            raise UsageError(f"Run.problems of {run.name!r} has none with split {split!r}: add one")


def check_memory(run: Run, micro_tokens: int = MICRO_TOKENS) -> None:
    """Print the table of a run that does not fit on standard error, and raise UsageError."""
    found = plan_here(run, load_config(run.model), micro_tokens)
    if not found.fits:
        Console(stderr=True, width=100).print(memory_table(found))
        raise UsageError(advice(found, demand_of(run)))


def plan_here(run: Run, config: Any, micro_tokens: int = MICRO_TOKENS) -> MemoryPlan:
    """The memory of a run on this machine, of a model with this configuration. Raises UsageError for a device that it has not."""
    limit, others = own_memory(run.device, run.evaluation_gib)
    return plan(demand_of(run), config, limit or machine_bytes(), gpu=limit > 0, micro_tokens=micro_tokens, others=others)


def plan_demand(demand: Demand, limit: int = 0, others: str = "") -> MemoryPlan:
    """The memory of a run that does not exist yet. limit, others: the bytes that the policy may take of a GPU, and who has the
    rest of it, in words; 0: it is on the CPU of this machine."""
    return plan(demand, load_config(demand.model), limit or machine_bytes(), gpu=limit > 0, others=others)


def shared_card(card_gib: float, evaluation_gib: int) -> tuple[int, str]:
    """The same as `own_memory`, for a card of that size which is not here and which evaluations share."""
    card = Gpu(0, "GPU-0", "", int(card_gib * GIB), "")
    return _own(Placement("cuda:0", card, shared=True), evaluation_gib)


def own_memory(device: str, evaluation_gib: int) -> tuple[int, str]:
    """The bytes that a policy may take of its card beside evaluations on `device`, and who has the rest, in words; 0 where it is
    on the CPU. Raises UsageError for a device that this machine has not."""
    try:
        placement = place(device)
    except ValueError as error:
        raise UsageError(f"Run.device or Run.jobs: {error}") from error
    return _own(placement, evaluation_gib)


def _own(placement: Placement, evaluation_gib: int) -> tuple[int, str]:
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
