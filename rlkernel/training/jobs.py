"""What is asked of the runs of a command before any of them trains: whether they can, and which may share an evaluator."""

from __future__ import annotations

from collections.abc import Sequence

from rlkernel.config import Run
from rlkernel.policy.load import check_model
from rlkernel.runs import wandb_mode
from rlkernel.training.placement import is_measured
from rlkernel.training.preflight import check_memory
from rlkernel.types import Precision

Wanted = tuple[str, int, Precision, int | None, int]
"""What runs must share to share an evaluator: device, jobs, precision, memory of a card and, unless times are measured here, the
seed."""


def evaluator_of(run: Run) -> Wanted:
    """The evaluator that a run wants."""
    seed = None if is_measured(run.device) else run.seed
    return run.device, run.jobs, run.precision, seed, run.evaluation_gib


def check(runs: Sequence[Run]) -> None:
    """Raise UsageError for what would end one of the runs at its start."""
    wandb_mode.check()
    for model, lora_rank in dict.fromkeys((run.model, run.lora_rank) for run in runs):
        check_model(model, lora_rank=lora_rank)
    for run in runs:
        check_memory(run)
