"""Stop a training command after a number of seconds, at a checkpoint, so that chunks of work fit a time slot.

After the time, the next checkpoint (or finished run) ends the command as SIGTERM does; the loop answers by leaving every run
ready to go on. Between a checkpoint and the next step nothing is lost. The command overruns by at most one step and its
validation.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rlkernel.config import Run
from rlkernel.runs import directory as rundir

GOES_ON = 75
"""Exit status of a command that stopped at its limit (EX_TEMPFAIL of sysexits.h): the same command goes on."""
INTERVAL = 0.1
"""Seconds between two looks at the checkpoints."""

Jobs = Sequence[tuple[Run, Path]]


class Limit:
    """`reached`: the time was up and the command was told to stop."""

    def __init__(self) -> None:
        self.reached = False


@contextmanager
def limited(jobs: Jobs, seconds: float | None) -> Iterator[Limit]:
    """Send this process SIGTERM at the first checkpoint after `seconds`, while some of `jobs` is unfinished; None: never.

    The body must handle SIGTERM, as `rlkernel.training.command.main` does.
    """
    limit = Limit()
    if seconds is None:
        yield limit
        return
    left = threading.Event()
    watcher = threading.Thread(target=_watch, args=(jobs, seconds, limit, left), daemon=True)
    watcher.start()
    try:
        yield limit
    finally:
        left.set()
        watcher.join()


def _watch(jobs: Jobs, seconds: float, limit: Limit, left: threading.Event) -> None:
    if left.wait(seconds):
        return
    before = [progress(run, directory) for run, directory in jobs]
    while not left.wait(INTERVAL):
        now = [progress(run, directory) for run, directory in jobs]
        # With everything finished the body is about to return, and nobody would handle the signal.
        if now != before and any(at < run.steps for at, (run, _) in zip(now, jobs, strict=True)):
            limit.reached = True
            os.kill(os.getpid(), signal.SIGTERM)
            return


def progress(run: Run, directory: Path) -> int:
    """Steps that are safe: those of the last complete checkpoint, all of them for a finished run, -1 for none.

    A run whose last step is saved but which is not yet marked as finished counts as one step less, so that it is not stopped
    there.
    """
    manifest = rundir.read_manifest(directory)
    if manifest is not None and "finished" in manifest:
        return run.steps
    saved = [int(path.parent.name.removeprefix("checkpoint-")) for path in directory.glob(f"checkpoints/*/{rundir.COMPLETE}")]
    return max((step for step in saved if step < run.steps), default=-1)


def over(started: float, seconds: float | None) -> bool:
    """Whether `seconds` have passed since `started`, of `time.monotonic`; for work that has no checkpoints inside."""
    return seconds is not None and time.monotonic() - started >= seconds
