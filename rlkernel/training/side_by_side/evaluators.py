"""The evaluators of a command, each open for as long as one of its runs is judged by it, or is still to be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.abc

from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.ray.pool import RayPool
from rlkernel.training.jobs import Wanted
from rlkernel.training.placement import open_evaluator


@dataclass
class _Open:
    """An evaluator that is open, or about to be."""

    pool: Pool | RayPool | None = None
    ready: anyio.Event = field(default_factory=anyio.Event)
    unused: anyio.Event = field(default_factory=anyio.Event)
    users: int = 0


class Evaluators:
    """Opens an evaluator for the first run that wants it and closes it after the last. expected: whether a run that has not begun
    wants this evaluator, too."""

    def __init__(self, tasks: anyio.abc.TaskGroup, cache_dir: Path | None, expected: Callable[[Wanted], bool]) -> None:
        self._tasks = tasks
        self._cache_dir = cache_dir
        self._expected = expected
        self._open: dict[Wanted, _Open] = {}

    @asynccontextmanager
    async def use(self, wanted: Wanted) -> AsyncIterator[Pool | RayPool]:
        """The evaluator that a run wants, which others may use meanwhile."""
        if wanted not in self._open:
            self._open[wanted] = _Open()
            # Not opened here: the task that opens an evaluator must close it, and this one may end before others that use it.
            self._tasks.start_soon(self._keep, wanted, self._open[wanted])
        one = self._open[wanted]
        one.users += 1
        try:
            await one.ready.wait()
            assert one.pool is not None
            yield one.pool
        finally:
            one.users -= 1
            if not one.users and not self._expected(wanted):
                del self._open[wanted]
                one.unused.set()

    async def _keep(self, wanted: Wanted, one: _Open) -> None:
        device, jobs, precision, seed, gib = wanted
        async with open_evaluator(device, jobs, self._cache_dir, precision, seed, gib) as one.pool:
            one.ready.set()
            await one.unused.wait()
