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
from rlkernel.training.placement import EvaluatorDemand, open_evaluator


@dataclass
class _Open:
    """An evaluator that is open, or about to be."""

    pool: Pool | RayPool | None = None
    ready: anyio.Event = field(default_factory=anyio.Event)
    unused: anyio.Event = field(default_factory=anyio.Event)
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when the last user leaves, whether or not another will come."""
    users: int = 0


class Evaluators:
    """Opens an evaluator for the first run that wants it and closes it after the last. expected: whether a run that has not begun
    wants this evaluator, too."""

    def __init__(self, tasks: anyio.abc.TaskGroup, cache_dir: Path | None, expected: Callable[[EvaluatorDemand], bool]) -> None:
        self._tasks = tasks
        self._cache_dir = cache_dir
        self._expected = expected
        self._open: dict[EvaluatorDemand, _Open] = {}

    @asynccontextmanager
    async def use(self, demand: EvaluatorDemand) -> AsyncIterator[Pool | RayPool]:
        """The evaluator that a run wants, which others may use meanwhile."""
        if demand not in self._open:
            self._open[demand] = _Open()
            # Not opened here: the task that opens an evaluator must close it, and this one may end before others that use it.
            self._tasks.start_soon(self._keep, demand, self._open[demand])
        one = self._open[demand]
        one.users += 1
        try:
            await one.ready.wait()
            assert one.pool is not None
            yield one.pool
        finally:
            one.users -= 1
            if not one.users:
                one.left.set()
            if not one.users and not self._expected(demand):
                del self._open[demand]
                one.unused.set()

    async def _keep(self, demand: EvaluatorDemand, one: _Open) -> None:
        async with open_evaluator(demand, self._cache_dir) as one.pool:
            one.ready.set()
            try:
                await one.unused.wait()
            finally:  # an interruption reaches users as well, who end an exchange with an oracle first: it must be there for that
                if one.users:
                    one.left = anyio.Event()
                    with anyio.CancelScope(shield=True):
                        await one.left.wait()
