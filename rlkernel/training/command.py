"""Training runs from a command line, one after another with one evaluator for neighbours, or side by side, until done or
interrupted."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import anyio.lowlevel
import torch

from rlkernel.config import Run
from rlkernel.errors import GOES_ON, UsageError
from rlkernel.policy.blocks import keep_programs
from rlkernel.runs import directory as rundir
from rlkernel.training import jobs as neighbours
from rlkernel.training import ranks
from rlkernel.training.interruption import interruptible
from rlkernel.training.placement import evaluator_of, open_evaluator
from rlkernel.training.side_by_side.host import portable, train_side_by_side
from rlkernel.training.threads import in_daemon


async def train_all(
    jobs: Sequence[tuple[Run, Path]], *, cache_dir: Path | None = None, checkpoint_every: int = 1, until: float | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> bool:  # fmt: skip
    """Train runs one after another, in this process, with one evaluator for neighbours that use the same device, jobs, precision,
    memory of a card and, where time is modelled, seed.

    Finished runs are skipped. Returns whether all are finished now: `until` (of `time.monotonic`) ends the work at the first
    checkpoint, or finished run, after it. Raises UsageError before anything is started if one of the directories holds another
    run, if a model cannot be loaded, or if Weights & Biases is asked for in a way that it does not accept.
    """
    # It imports TRL, which a command whose runs train side by side leaves to their processes.
    from rlkernel.training import loop

    if cache_dir is not None:
        keep_programs(cache_dir.parent / "programs")
    waiting = [(run, directory) for run, directory in jobs if not rundir.finished(directory, run)]
    if waiting:
        await in_daemon(neighbours.check, [run for run, _ in waiting])
    while waiting:
        demand = evaluator_of(waiting[0][0])
        async with open_evaluator(demand, cache_dir) as pool:
            while waiting and evaluator_of(waiting[0][0]) == demand:
                run, directory = waiting.pop(0)
                done = await loop.train(
                    run, directory, evaluator=pool, checkpoint_every=checkpoint_every, until=until, labels=labels
                )
                if not done or (waiting and until is not None and time.monotonic() >= until):
                    return False
                # A trainer and its callbacks refer to each other: its model, moments and cache would stay beside the next run's.
                # Until its next turn the event loop holds frames of the task that was cancelled last (Python 3.12).
                await anyio.lowlevel.checkpoint()
                gc.collect()
                torch.cuda.empty_cache()
    return True


def main(
    jobs: Sequence[tuple[Run, Path]], *, cache_dir: Path | None = None, checkpoint_every: int = 1, until: float | None = None,
    labels: Mapping[str, str] = MappingProxyType({}), together: int = 1,
) -> int:  # fmt: skip
    """Train runs for a command, which runs in `rlkernel.errors.exit_status`: 0, or GOES_ON where `until` came first. together: at
    most so many runs train side by side, each in a process of its own (`train_side_by_side`); with 1, `train_all`.

    Ctrl-C and SIGTERM raise KeyboardInterrupt when nothing is left behind and every run is ready to go on.
    """
    status = 0
    if together > 1 and ranks.size() > 1:
        raise UsageError(f"--together {together}: the processes of a launcher train one run together; use --together 1")
    if together > 1 and not portable(jobs):
        print("a class of these runs is in the script that was started: they train one after another", file=sys.stderr)
        together = 1

    async def work() -> None:
        nonlocal status
        how = partial(train_side_by_side, together=together) if min(together, len(jobs)) > 1 else train_all
        if not await how(jobs, cache_dir=cache_dir, checkpoint_every=checkpoint_every, until=until, labels=labels):
            status = GOES_ON

    if anyio.run(interruptible, work):
        raise KeyboardInterrupt("the same command goes on from the last checkpoint, or from the start if there is none")
    return status
