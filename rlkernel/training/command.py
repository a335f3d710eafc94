"""Training runs from a command line: one after another, with one evaluator for neighbours, until done or interrupted."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import anyio
import torch

from rlkernel.config import Run
from rlkernel.errors import GOES_ON
from rlkernel.policy.blocks import keep_programs
from rlkernel.policy.load import check_model
from rlkernel.runs import directory as rundir
from rlkernel.runs import wandb_mode
from rlkernel.training.interruption import interruptible
from rlkernel.training.loop import train
from rlkernel.training.placement import is_measured, open_evaluator
from rlkernel.training.preflight import check_memory
from rlkernel.training.threads import in_daemon
from rlkernel.types import Precision


async def train_all(
    jobs: Sequence[tuple[Run, Path]], *, cache_dir: Path | None = None, checkpoint_every: int = 1, until: float | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> bool:  # fmt: skip
    """Train runs one after another, with one evaluator for neighbours that use the same device, jobs, precision, memory of a
    card and, where time is modelled, seed.

    Finished runs are skipped. Returns whether all are finished now: `until` (of `time.monotonic`) ends the work at the first
    checkpoint, or finished run, after it. Raises UsageError before anything is started if one of the directories holds another
    run, if a model cannot be loaded, or if Weights & Biases is asked for in a way that it does not accept.
    """
    if cache_dir is not None:
        keep_programs(cache_dir.parent / "programs")
    waiting = [(run, directory) for run, directory in jobs if not rundir.finished(directory, run)]
    if waiting:
        await in_daemon(_check, [run for run, _ in waiting])
    while waiting:
        wanted = _evaluator_of(waiting[0][0])
        async with open_evaluator(wanted[0], wanted[1], cache_dir, *wanted[2:]) as pool:
            while waiting and _evaluator_of(waiting[0][0]) == wanted:
                run, directory = waiting.pop(0)
                done = await train(run, directory, evaluator=pool, checkpoint_every=checkpoint_every, until=until, labels=labels)
                if not done or (waiting and until is not None and time.monotonic() >= until):
                    return False
                # A trainer and its callbacks refer to each other: its model, moments and cache would stay beside the next run's.
                gc.collect()
                torch.cuda.empty_cache()
    return True


def _evaluator_of(run: Run) -> tuple[str, int, Precision, int | None, int]:
    """What neighbours must share to share an evaluator: device, jobs, precision, memory of a card and, unless times are measured
    here, the seed."""
    seed = None if is_measured(run.device) else run.seed
    return run.device, run.jobs, run.precision, seed, run.evaluation_gib


def _check(runs: Sequence[Run]) -> None:
    """Raise UsageError for what would end one of the runs at its start."""
    wandb_mode.check()
    for model, lora_rank in dict.fromkeys((run.model, run.lora_rank) for run in runs):
        check_model(model, lora_rank=lora_rank)
    for run in runs:
        check_memory(run)


def main(
    jobs: Sequence[tuple[Run, Path]], *, cache_dir: Path | None = None, checkpoint_every: int = 1, until: float | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> int:  # fmt: skip
    """`train_all` for a command, which runs in `rlkernel.errors.exit_status`: 0, or GOES_ON where `until` came first.

    Ctrl-C and SIGTERM raise KeyboardInterrupt when nothing is left behind and every run is ready to go on.
    """
    status = 0

    async def work() -> None:
        nonlocal status
        if not await train_all(jobs, cache_dir=cache_dir, checkpoint_every=checkpoint_every, until=until, labels=labels):
            status = GOES_ON

    if anyio.run(interruptible, work):
        raise KeyboardInterrupt("the same command goes on from the last checkpoint, or from the start if there is none")
    return status
