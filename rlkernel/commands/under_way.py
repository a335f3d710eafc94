"""Says what the evaluation of one pair is doing, in which stage and since when, so that nobody stares at a silent terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import anyio
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from rlkernel.evaluator.config import Limits

FIRST = 5.0
"""Seconds of a stage after which a line tells of it where there is no terminal; the next ones come after twice as many each."""


def words_of(limits: Limits) -> dict[str, str]:
    """Stage, as `rlkernel.evaluator.stages.Clock` calls it -> what it does, with the seconds of a processor, or of the GPU, after
    which the verdict is `timeout`.

    >>> words_of(Limits())["trace"]
    'tracing the candidate (5 s of a processor at most)'
    """
    return {
        "trace": f"tracing the candidate ({limits.trace_seconds} s of a processor at most)",
        "compile": f"compiling its kernels ({limits.compile_seconds} s of a processor at most)",
        "run": f"running its kernels ({limits.run_seconds} s of a processor at most)",
        "gpu": f"running its kernels on the GPU ({limits.gpu_seconds:g} s at most)",
    }


class UnderWay:
    """A clock with the stage on a terminal, where the line goes when it is over; elsewhere a plain line at the start, and more
    for a stage that takes long."""

    def __init__(self, what: str, console: Console, limits: Limits) -> None:
        self._what, self._console, self._words = what, console, words_of(limits)
        columns = (TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True) if console.is_terminal else None
        self._doing = "looking at the reference"
        self._since, self._due = time.monotonic(), FIRST

    def __enter__(self) -> UnderWay:
        if self._bar is None:
            self._console.print(self._what, soft_wrap=True, markup=False, highlight=False)
        else:
            self._task = self._bar.add_task(self._what, total=None)
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """What is done inside is the stage `name`; afterwards it is the evaluator's own work again."""
        self.begin(self._words.get(name, name))
        try:
            yield
        finally:
            self.begin("judging")

    def begin(self, doing: str) -> None:
        """From now on `doing` is under way."""
        self._doing, self._since, self._due = doing, time.monotonic(), FIRST
        if self._bar is not None:
            self._bar.update(self._task, description=f"{self._what}: {doing}")

    def look(self, now: float) -> None:
        """Print a line where one is due at `now`, of `time.monotonic`, and there is no terminal."""
        seconds = now - self._since
        if self._bar is None and seconds >= self._due:
            self._due = 2 * seconds
            line = f"{seconds:.0f} s so far: {self._doing}"
            self._console.print(line, soft_wrap=True, markup=False, highlight=False)

    async def tell(self) -> None:
        """Look every second, until it is cancelled."""
        while True:
            await anyio.sleep(1)
            self.look(time.monotonic())
