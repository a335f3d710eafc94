"""The pool's end of one GPU: a lease that one candidate holds at a time, and a runner process that is replaced when it is lost.

lease -> ask -> answer -> release        a lost, hung or dead runner is replaced while the verdict is already on its way
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from rlkernel.evaluator import wire
from rlkernel.evaluator.fork_server import Child, ChildDied, ForkServer, ZygoteDied
from rlkernel.evaluator.gpus import Gpu

HELLO_SECONDS = 60.0
STARTS = 3
"""Attempts to start a runner before the GPU is given up."""


class RunnerFailed(RuntimeError):
    """The GPU's trusted process cannot be started: our failure, or the machine's, never a candidate's."""


class RunnerLost(Exception):
    """The runner did not answer: it died, or was killed for taking too long. `death` is None in the second case."""

    def __init__(self, death: ChildDied | None) -> None:
        super().__init__(str(death))
        self.death = death


class GpuRunner:
    """See `open_runner`."""

    def __init__(self, gpu: Gpu, server: ForkServer, memory_bytes: int) -> None:
        self.gpu = gpu
        self.held_seconds = 0.0
        """Sum of all leases."""
        self.starts = 0
        self._server = server
        self._memory_bytes = memory_bytes
        self._lease = anyio.Lock()
        self._child: Child | None = None
        self._ready = anyio.Event()
        self._lost = anyio.Event()
        self._failed_starts = 0
        self._failure: str | None = None

    @property
    def waiting(self) -> int:
        """Candidates that hold the lease or wait for it."""
        statistics = self._lease.statistics()
        return statistics.tasks_waiting + int(statistics.locked)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        """Exclusive use of the GPU, with a living runner. Raises RunnerFailed."""
        async with self._lease:
            await self._ready.wait()
            if self._failure is not None:
                raise RunnerFailed(self._failure)
            since = time.perf_counter()
            try:
                yield
            finally:
                self.held_seconds += time.perf_counter() - since

    async def ask(self, message: bytes, seconds: float) -> tuple[dict[str, Any], bytes]:
        """One question, under the lease. Raises RunnerLost; cancelled or not, half an exchange costs the runner."""
        child = self._child
        assert child is not None
        finished = False
        try:
            with anyio.fail_after(seconds):
                header, body = await child.ask(message)
            finished = not header.get("lost", False)
            return header, body
        except TimeoutError:
            raise RunnerLost(None) from None
        except (ChildDied, wire.BadMessage) as error:
            raise RunnerLost(error if isinstance(error, ChildDied) else None) from None
        finally:
            if not finished:
                self._ready = anyio.Event()
                self._lost.set()
                self._server.kill(child)

    async def ask_aside(self, message: bytes, seconds: float) -> dict[str, Any]:
        """One question to a process of its own on this GPU, under the lease. {"failed": why} if it has no answer."""
        try:
            with anyio.fail_after(seconds):
                async with self._server.child("runner") as child:
                    await child.ask(self._hello(first=False))
                    header, _ = await child.ask(message)
        except (TimeoutError, ChildDied, wire.BadMessage) as error:
            return {"failed": error.describe() if isinstance(error, ChildDied) else str(error) or "it took too long"}
        return {"failed": str(header["detail"])} if "status" in header else header

    def _hello(self, *, first: bool) -> bytes:
        return wire.pack({"do": "hello", "memory_bytes": self._memory_bytes, "first": first})

    async def serve(self) -> None:
        """Keep a runner alive, until cancelled or given up."""
        try:
            await self._server.ready()
            while self._failure is None:
                await self._serve_one()
        except (ZygoteDied, TimeoutError) as error:
            self._give_up(str(error) or "its fork server does not start")

    async def _serve_one(self) -> None:
        async with self._server.child("runner") as child:
            self._lost = anyio.Event()
            try:
                with anyio.fail_after(HELLO_SECONDS):
                    answer, _ = await child.ask(self._hello(first=not self.starts))
                if "status" in answer:
                    raise wire.BadMessage(str(answer["detail"]))
            except (TimeoutError, ChildDied, wire.BadMessage) as error:
                self._count_failure(error)
                return
            self.starts += 1
            self._failed_starts = 0
            self._child = child
            self._ready.set()
            await self._lost.wait()

    def _count_failure(self, error: Exception) -> None:
        self._failed_starts += 1
        if self._failed_starts >= STARTS:
            what = f"it {error.describe()}" if isinstance(error, ChildDied) else str(error) or "it does not answer"
            self._give_up(what)

    def _give_up(self, why: str) -> None:
        self._failure = f"{self.gpu.name} ({self.gpu.uuid}): its runner does not start: {why}"
        self._ready.set()


@asynccontextmanager
async def open_runner(gpu: Gpu, memory_bytes: int) -> AsyncIterator[GpuRunner]:
    """A runner for one GPU, ready soon. `memory_bytes`: what torch may take of the GPU's memory."""
    async with ForkServer(gpu.uuid) as server:
        runner = GpuRunner(gpu, server, memory_bytes)
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        tasks.start_soon(runner.serve)
        try:
            yield runner
        finally:  # not `async with`: an error of the body would come out inside a group
            tasks.cancel_scope.cancel()
            await tasks.__aexit__(None, None, None)
