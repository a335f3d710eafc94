"""The pool's end of the zygote. It starts the zygote, asks for children, sees their death and leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.abc
import anyio.to_thread

from rlkernel.errors import EvaluatorEnded
from rlkernel.evaluator import wire
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.forking import Exited, Fork, Forked, Kill, Ready
from rlkernel.evaluator.processes import launching, spending
from rlkernel.evaluator.processes.child import Child
from rlkernel.evaluator.processes.words import Ear, Words

START_SECONDS = 120.0
"""How long a zygote may take until it can fork."""
EXIT_SECONDS = 10.0
"""How long a process that was told or made to end may take to do so."""


class ZygoteDied(EvaluatorEnded):
    """The fork server itself has ended, which is our failure and not a candidate's."""


class ForkServer:
    """An async context manager around one zygote process. `gpu` is the GPU's UUID if the zygote is for that GPU's runner."""

    def __init__(self, gpu: str = "") -> None:
        self._gpu = gpu
        self._children: dict[int, Child] = {}
        self._count = 0
        self._ready = anyio.Event()
        self._dead: str | None = None
        self.words: Words | None = None
        """Where what candidates print while they are traced is kept; None: nowhere."""

    async def __aenter__(self) -> Self:
        launched = launching.take(self._gpu)
        self._launched, self._process, self._control = launched, launched.process, launched.control
        self.scratch = Path(launched.scratch.name)
        self._pids = {self._process.pid}
        self._tasks = anyio.create_task_group()
        self._listening = anyio.CancelScope(shield=True)
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._listen_to_the_end)
        return self

    @property
    def pid(self) -> int:
        """The id of the zygote's process."""
        return self._process.pid

    @property
    def pids(self) -> frozenset[int]:
        """The ids of the zygote and of every child that it ever had, because a card may still list one that has just died."""
        return frozenset(self._pids)

    async def ready(self) -> None:
        """Wait until the zygote can fork, which takes seconds; several start side by side. Raises ZygoteDied, TimeoutError."""
        with anyio.fail_after(START_SECONDS):
            await self._ready.wait()
        if self._dead is not None:
            raise ZygoteDied(self._dead)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        anyio.notify_closing(self._control)  # or the listener would seem to wait on whatever gets this number next
        self._control.close()
        with anyio.CancelScope(shield=True):
            if not await self._ends():
                self._launched.kill()
                await self._ends()
        for child in self._children.values():
            child.sock.close()
        self._launched.log.close()
        self._launched.scratch.cleanup()
        self._listening.cancel()
        await self._tasks.__aexit__(None, None, None)

    async def _ends(self) -> bool:
        """Give the zygote some time to end; whether it has."""
        with anyio.move_on_after(EXIT_SECONDS):
            await anyio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)
        return self._process.returncode is not None

    async def _listen_to_the_end(self) -> None:
        """Listen even when cancelled: a cancelled owner waits for its children and must still hear that they have ended."""
        with self._listening:
            await self._listen()

    async def _listen(self) -> None:
        """Take events from the zygote until it or we are gone; then every child has ended."""
        while True:
            try:
                await anyio.wait_readable(self._control)
                data = self._control.recv(1 << 16)
            except BlockingIOError:
                continue
            except (OSError, ValueError, anyio.ClosedResourceError):
                data = b""
            if not data:
                break
            self._hear(codec.unpack(wire.parse(data), Ready, Forked, Exited))
        self._end_all()

    def _hear(self, event: Ready | Forked | Exited) -> None:
        """Take one event: the zygote is ready, a child has started, or a child has ended."""
        if isinstance(event, Ready):
            self._ready.set()
            return
        child = self._children.get(event.number)
        if child is None:
            return
        if isinstance(event, Forked):
            child.pid = event.pid
            self._pids.add(child.pid)
            with suppress(OSError):
                child.pidfd = os.pidfd_open(child.pid)
        else:
            child.status, child.processor_seconds = event.status, event.processor_seconds
            child.ended.set()
        child.started.set()

    def _end_all(self) -> None:
        """Mark the zygote as dead, and kill the children that it leaves behind."""
        self._dead = self._last_words()
        self._ready.set()
        for child in self._children.values():
            if child.ended.is_set():
                continue
            _kill_now(child)  # nobody else is left to do so, and a hung one ends by nothing else
            child.status = signal.SIGKILL
            child.started.set()
            child.ended.set()

    def _last_words(self) -> str:
        """Return the last line that the zygote wrote."""
        log = self._launched.log
        if log.closed:
            return "the fork server is closed"
        log.seek(0)
        lines = log.read().decode(errors="replace").strip().splitlines()
        return f"the fork server ended: {lines[-1] if lines else 'it said nothing'}"

    def _send(self, message: Fork | Kill, *fds: int) -> None:
        if self._dead is not None:
            raise ZygoteDied(self._dead)
        data = json.dumps(codec.to_header(message)).encode()
        try:
            if fds:
                socket.send_fds(self._control, [data], fds)
            else:
                self._control.send(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ZygoteDied("the fork server ended") from error

    @asynccontextmanager
    async def child(
        self, kind: str, *, cpu_seconds: int = 0, memory_bytes: int = 0, compiler: bool = False
    ) -> AsyncIterator[Child]:  # fmt: skip
        """A forked child of the given kind (see `jobs.JOBS`); gone when the context is left. compiler: whether it will import
        torch's compiler."""
        await self.ready()
        self._count += 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        child = Child(self._count, ours)
        self._children[child.number] = child
        ear = Ear(self.words if kind == "trace" else None)
        try:
            with theirs, ear.offered(self._tasks) as heard:
                self._send(Fork(child.number, kind, cpu_seconds, memory_bytes, compiler), theirs.fileno(), *heard)
            yield child
        finally:
            anyio.notify_closing(ours)  # or who still waits for an answer would wait for ever
            ours.close()
            with anyio.CancelScope(shield=True):
                if not child.ended.is_set() and self._dead is None:
                    if kind != "oracle":
                        await self._kill(child)
                    with anyio.move_on_after(EXIT_SECONDS):
                        await child.ended.wait()
                await ear.close(EXIT_SECONDS)
            self._children.pop(child.number, None)
            if child.pidfd is not None:
                os.close(child.pidfd)
                child.pidfd = None

    def waiting_at_most(self, seconds: float, child: Child) -> AbstractContextManager[anyio.CancelScope]:
        """Cancel what is inside once the child has waited, without work for a processor, for so many seconds in all."""
        return spending.waiting_at_most(seconds, child, self._tasks)

    def kill(self, child: Child) -> None:
        """Kill the child now with its whole group; leaving its context still waits for the end. Raises nothing."""
        if child.ended.is_set():
            return
        try:
            self._send(Kill(child.number))
        except (ZygoteDied, OSError):
            _kill_now(child)

    async def _kill(self, child: Child) -> None:
        """Give a child that has answered a moment to exit by itself, then kill it with its whole group."""
        with anyio.move_on_after(0.02):
            await child.ended.wait()
        self.kill(child)


def _kill_now(child: Child) -> None:
    """Kill a child without the zygote. While its `pidfd` answers, no other process or group has its number."""
    if child.pidfd is None:
        return
    with suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(child.pidfd, 0)
        with suppress(ProcessLookupError):  # it has no group of its own yet
            os.killpg(child.pid, signal.SIGKILL)
        signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
