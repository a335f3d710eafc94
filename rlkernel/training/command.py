"""Training runs from a command line: one after another, with one evaluator for neighbours, until done or interrupted."""

from __future__ import annotations

import gc
import signal
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import torch

from rlkernel.config import Run
from rlkernel.runs import directory as rundir
from rlkernel.training import ranks
from rlkernel.training.loop import train
from rlkernel.training.placement import open_evaluator

SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def train_all(jobs: Sequence[tuple[Run, Path]], *, cache_dir: Path | None = None, checkpoint_every: int = 1) -> None:
    """Train runs one after another, with one evaluator for neighbours that use the same device and jobs.

    Finished runs are skipped. Raises UsageError before anything is trained if one of the directories holds another run.
    """
    waiting = [(run, directory) for run, directory in jobs if not rundir.finished(directory, run)]
    while waiting:
        device, lanes = waiting[0][0].device, waiting[0][0].jobs
        async with open_evaluator(device, lanes, cache_dir) as pool:
            while waiting and (waiting[0][0].device, waiting[0][0].jobs) == (device, lanes):
                run, directory = waiting.pop(0)
                await train(run, directory, evaluator=pool, checkpoint_every=checkpoint_every)
                # A trainer and its callbacks refer to each other: its model, moments and cache would stay beside the next run's.
                gc.collect()
                torch.cuda.empty_cache()


def main(jobs: Sequence[tuple[Run, Path]], *, cache_dir: Path | None = None, checkpoint_every: int = 1) -> None:
    """`train_all` for a command, which runs in `rlkernel.errors.exit_status`. Ctrl-C and SIGTERM raise KeyboardInterrupt when
    nothing is left behind and every run is ready to go on."""

    if anyio.run(interruptible, partial(train_all, jobs, cache_dir=cache_dir, checkpoint_every=checkpoint_every)):
        raise KeyboardInterrupt("the same command goes on from the last checkpoint, or from the start if there is none")


async def interruptible(work: Callable[[], Awaitable[None]]) -> bool:
    """Do `work`, and cancel it on Ctrl-C or SIGTERM. Whether that happened; everything is cleaned up by then."""
    interrupted = False

    async def watch(scope: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        nonlocal interrupted
        try:
            with anyio.open_signal_receiver(*SIGNALS) as signals:
                task_status.started()
                async for _ in signals:
                    interrupted = True
                    scope.cancel()
        finally:
            if interrupted and ranks.size() > 1:
                # The launcher passes on what a terminal has sent to all: once is enough.
                for number in SIGNALS:
                    signal.signal(number, signal.SIG_IGN)

    async with anyio.create_task_group() as tasks:
        await tasks.start(watch, tasks.cancel_scope)
        await work()
        tasks.cancel_scope.cancel()
    return interrupted
