"""The pool's end of one GPU: a lease that one candidate holds at a time, and a runner process that is replaced when it is lost.

    lease -> ask -> answer -> release

A lost, hung or dead runner is replaced while the verdict is already on its way.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio

from rlkernel.errors import EvaluatorFailed
from rlkernel.evaluator import wire
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.endings import Ending, Failed
from rlkernel.evaluator.messages.gpu import Card, CompiledTimes, Hello, NotCompiled
from rlkernel.evaluator.processes.child import Child, ChildDied
from rlkernel.evaluator.processes.fork_server import ForkServer, ZygoteDied

A = TypeVar("A")
HELLO_SECONDS = 60.0
"""How long a new runner may take to answer its greeting."""
STARTS = 3
"""How many runners in a row may end before they could be asked anything; then the GPU is given up."""


class RunnerFailed(RuntimeError):
    """The GPU's trusted process cannot be started, which is our failure or the machine's, never a candidate's."""


class RunnerLost(Exception):
    """The runner did not answer. It died, or it was killed for taking too long; `death` is None in the second case."""

    def __init__(self, death: ChildDied | None) -> None:
        super().__init__(str(death))
        self.death = death


class GpuRunner:
    """One GPU with the process that owns it. `open_runner` opens it."""

    def __init__(self, gpu: Gpu, server: ForkServer, memory_bytes: int) -> None:
        self.gpu = gpu
        self.held_seconds = 0.0
        """Seconds that candidates have held their leases, summed over all of them."""
        self.waited_seconds = 0.0
        """Seconds that candidates have waited for their leases, summed over all of them."""
        self.guests_waited_seconds = 0.0
        """Seconds that others have waited for theirs (`lease_as_guest`), summed over all of them."""
        self.starts = 0
        self._server = server
        self._memory_bytes = memory_bytes
        self._lease = anyio.Lock()
        self._child: Child | None = None
        self._ready = anyio.Event()
        self._lost = anyio.Event()
        self._answered = anyio.Event()
        """This event is not set while a question is on its way."""
        self._answered.set()
        self._asked = False
        self._failure: str | None = None

    @property
    def server(self) -> ForkServer:
        """The fork server that was started for this GPU."""
        return self._server

    @property
    def pids(self) -> frozenset[int]:
        """The process ids of ours that may hold this GPU, or have."""
        return self._server.pids

    @property
    def failed(self) -> bool:
        """Whether this GPU is given up: every lease raises RunnerFailed, now and later."""
        return self._failure is not None

    @property
    def waiting(self) -> int:
        """How many hold a lease or wait for one."""
        statistics = self._lease.statistics()
        return statistics.tasks_waiting + int(statistics.locked)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        """A candidate's exclusive use of the GPU, with a living runner. Raises RunnerFailed."""
        asked = time.perf_counter()
        async with self._lease:
            self.waited_seconds += time.perf_counter() - asked
            await self._living()
            since = time.perf_counter()
            try:
                yield
            finally:
                self.held_seconds += time.perf_counter() - since

    @asynccontextmanager
    async def lease_as_guest(self) -> AsyncIterator[None]:
        """Exclusive use of the GPU for somebody else's work, whatever has become of the runner. Guests and candidates stand in
        one queue, first come, first served; the work must have finished when the lease ends."""
        asked = time.perf_counter()
        async with self._lease:
            self.guests_waited_seconds += time.perf_counter() - asked
            yield

    async def _living(self) -> Child:
        """Wait for a living runner, which is the one that follows if the present one has died in silence. Raises RunnerFailed."""
        while True:
            if not self._ready.is_set():  # to wait for what is there would let all others go first
                await self._ready.wait()
            if self._failure is not None:
                raise RunnerFailed(self._failure)
            child = self._child
            assert child is not None
            if not child.gone:
                return child
            self._retire(child)

    def _retire(self, child: Child) -> None:
        """Take note that `child` answers no more, so that whoever asks waits for the next one. A second call changes nothing."""
        if self._child is child:
            self._child = None
            self._ready = anyio.Event()
            self._lost.set()

    async def ask(self, question: bytes, seconds: float, *answers: type[A]) -> A | Failed:
        """The answer to a question, under the lease. `seconds` do not count the start of a runner that died before it was asked.

        Raises RunnerLost, RunnerFailed, or EvaluatorFailed for nonsense. Cancelled or not, half an exchange costs the runner.
        """
        child = await self._living()
        self._asked, self._answered = True, anyio.Event()
        finished = False
        try:
            with anyio.fail_after(seconds):
                header, _ = await child.ask(question)
            answer = self._read(header, *answers)
            finished = not (isinstance(answer, Ending) and answer.lost)
            return answer
        except TimeoutError:
            raise RunnerLost(None) from None
        except (ChildDied, wire.BadMessage) as error:
            raise RunnerLost(error if isinstance(error, ChildDied) else None) from None
        finally:
            self._answered.set()
            if not finished:
                self._retire(child)
                self._server.kill(child)

    def _read(self, header: dict[str, Any], *answers: type[A]) -> A | Failed:
        """What a runner, which is trusted, has answered. Raises EvaluatorFailed."""
        try:
            answer: A | Failed = codec.unpack(header, *answers, Failed)
        except wire.BadMessage as error:
            raise EvaluatorFailed(f"the process that drives {self.gpu.name} ({self.gpu.uuid}) sent {error}") from error
        return answer

    async def time_compiled(self, question: bytes, seconds: float) -> CompiledTimes | NotCompiled:
        """The answer to a `TimeCompiled`, from a process that is started for it on this GPU, under the lease.

        Raises RunnerFailed, because without its fork server this GPU has no process at all.
        """
        try:
            with anyio.fail_after(seconds):
                async with self._server.child("runner") as child:
                    await child.ask(self._hello(first=False))
                    header, _ = await child.ask(question)
        except (TimeoutError, ChildDied, wire.BadMessage) as error:
            return NotCompiled(error.describe() if isinstance(error, ChildDied) else str(error) or "it took too long")
        except ZygoteDied as error:
            raise RunnerFailed(self._give_up(str(error))) from error
        answer: CompiledTimes | NotCompiled | Failed = self._read(header, CompiledTimes, NotCompiled)
        return NotCompiled(answer.detail) if isinstance(answer, Failed) else answer

    def _hello(self, *, first: bool) -> bytes:
        return codec.pack(Hello(self._memory_bytes, first))

    async def serve(self) -> None:
        """Keep a runner alive until this is cancelled or the GPU is given up."""
        try:
            await self._server.ready()
            failures = 0
            while self._failure is None:
                why = await self._serve_one()
                failures = 0 if why is None else failures + 1
                if why is not None and failures >= STARTS:
                    self._give_up(why)
        except (ZygoteDied, TimeoutError) as error:
            self._give_up(str(error) or "its fork server does not start")

    async def _serve_one(self) -> str | None:
        """Run one runner to its end. Returns why it was of no use, or None if somebody could ask it."""
        async with self._server.child("runner") as child:
            self._lost = anyio.Event()
            self._asked = False
            try:
                with anyio.fail_after(HELLO_SECONDS):
                    header, _ = await child.ask(self._hello(first=not self.starts))
                answer = self._read(header, Card)
                if isinstance(answer, Failed):
                    return answer.detail
            except (TimeoutError, ChildDied, wire.BadMessage, EvaluatorFailed) as error:
                return f"it {error.describe()}" if isinstance(error, ChildDied) else str(error) or "it does not answer"
            self.starts += 1
            self._child = child
            self._ready.set()
            await _either(self._lost, child.ended)
            self._retire(child)
            await self._answered.wait()  # who asks reads from the socket until it finds the end itself
            return None if self._asked else "it died before it was asked anything"

    def _give_up(self, why: str) -> str:
        self._failure = f"{self.gpu.name} ({self.gpu.uuid}): its runner does not start: {why}"
        self._ready.set()
        return self._failure


async def _either(first: anyio.Event, second: anyio.Event) -> None:
    async with anyio.create_task_group() as tasks:

        async def one(event: anyio.Event) -> None:
            await event.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(one, first)
        tasks.start_soon(one, second)


@asynccontextmanager
async def open_runner(gpu: Gpu, memory_bytes: int) -> AsyncIterator[GpuRunner]:
    """A runner for one GPU, which is ready soon. `memory_bytes` is what torch may take of the GPU's memory."""
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
