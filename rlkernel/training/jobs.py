"""What is asked of the runs of a command before any of them trains: whether they can."""

from __future__ import annotations

from collections.abc import Sequence

from rlkernel.config import Run
from rlkernel.policy.load import check_model
from rlkernel.runs import wandb_mode
from rlkernel.training.preflight import check_device, check_memory, check_problems


def check(runs: Sequence[Run]) -> None:
    """Raise UsageError for what would end one of the runs at its start."""
    wandb_mode.check()
    for run in runs:
        check_problems(run)
    for device in dict.fromkeys(run.device for run in runs):
        check_device(device)  # before a model is looked at, which takes seconds
    for model, lora_rank in dict.fromkeys((run.model, run.lora_rank) for run in runs):
        check_model(model, lora_rank=lora_rank)
    for run in runs:
        check_memory(run)
