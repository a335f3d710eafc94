"""The actor that runs on a node of a Ray cluster and owns a pool there. Nothing here needs Ray.

An actor answers with plain values, so that a failure reads the same on the driver whatever the node could import.
"""

from __future__ import annotations

import anyio

from rlkernel.errors import BrokenReference, one_line
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.pool import Pool, open_pool
from rlkernel.evaluator.ray.messages import Answer, Hello
from rlkernel.evaluator.version import source_version
from rlkernel.types import Problem


class Actor:
    """An actor with one pool. The call `serve` lives as long as the actor does; the other methods are called beside it."""

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._settled = anyio.Event()
        self._stop = anyio.Event()
        self._scopes: dict[int, anyio.CancelScope] = {}
        """The scopes of the evaluations that run, by ticket."""
        self._dropped: set[int] = set()
        """The tickets of evaluations that have not arrived and are not wanted any more."""
        self._newest = 0
        self._late: set[int] = set()
        """The tickets below the newest that have not arrived: calls may pass each other."""

    async def version(self) -> str:
        """Return the version of the evaluator that is installed on this node."""
        return source_version()

    async def serve(self, device: str, jobs: int, config: EvaluatorConfig) -> None:
        """Keep the pool open until `stop` is called. It is one call, because a pool is closed by the task that opened it."""
        try:
            async with open_pool(device=device, jobs=jobs, config=config) as self._pool:
                self._settled.set()
                await self._stop.wait()
        finally:
            self._settled.set()

    async def hello(self) -> Hello | None:
        """Wait for the pool and describe it. The answer is None if there is none; `serve` then raises why."""
        await self._settled.wait()
        if self._pool is None:
            return None
        uuids = tuple(runner.gpu.uuid for runner in self._pool.runners)
        return Hello(self._pool.device, uuids, self._pool.jobs, self._pool.config, self._pool.notices)

    async def judge(self, ticket: int, problem: Problem, code: str) -> Answer:
        """Judge one candidate. The driver numbers its calls 1, 2, ... with `ticket`, and may drop one by its number."""
        assert self._pool is not None
        self._late.update(range(self._newest + 1, ticket))
        self._late.discard(ticket)
        self._newest = max(self._newest, ticket)
        if ticket in self._dropped:
            self._dropped.remove(ticket)
            return Answer()
        try:
            with anyio.CancelScope() as self._scopes[ticket]:
                return Answer(await self._pool.judge(problem, code), notices=self._pool.notices)
        except BrokenReference as error:
            return Answer(broken=str(error))
        except Exception as error:  # our own failure, told to the driver, which hands the evaluation to another actor
            return Answer(failed=one_line(error))
        finally:
            del self._scopes[ticket]
        return Answer()  # nobody waits for it any more

    async def drop(self, ticket: int) -> None:
        """Cancel an evaluation, which may be about to arrive (Ray's own cancellation passes by those), or may just have ended."""
        if ticket in self._scopes:
            self._scopes[ticket].cancel()
        elif ticket > self._newest or ticket in self._late:
            self._dropped.add(ticket)

    async def stop(self) -> None:
        """Let `serve` close the pool and end."""
        self._stop.set()
