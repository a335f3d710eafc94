"""A forked process at the pool's end: what it is asked, and how it has ended."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from rlkernel.evaluator import wire

PARSED_HERE = 1 << 16
"""Bytes of a header that are parsed in under a millisecond. What is longer is parsed beside the event loop."""


class ChildDied(Exception):
    """A child ended before it had answered. `signal` is None if it exited by itself."""

    def __init__(self, exit_code: int | None, number: int | None, processor_seconds: float = 0.0) -> None:
        super().__init__(exit_code, number)
        self.exit_code = exit_code
        self.signal = number
        self.processor_seconds = processor_seconds
        """The processor time that it has taken, as far as it is known."""

    def describe(self) -> str:
        """Say how the child ended, as the end of a sentence."""
        if self.signal is not None:
            return f"was killed by {signal.Signals(self.signal).name}"
        return f"exited with status {self.exit_code} before it had finished"


@dataclass
class Child:
    """One forked process, which may be asked any number of times. Whoever opened it kills it by leaving the context."""

    number: int
    sock: socket.socket
    started: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    pid: int = 0
    pidfd: int | None = None
    """The descriptor of the process itself, whatever its number comes to mean; None where the kernel has no such thing."""
    status: int = 0
    """The status that `waitpid` gives, once the process has ended."""
    processor_seconds: float = 0.0
    """The processor time that the process has taken, once it has ended."""

    @property
    def gone(self) -> bool:
        """Whether the child has ended, or has closed its end of the socket."""
        if self.ended.is_set():
            return True
        try:
            return not self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    async def ask(self, message: bytes, body: bytes = b"", *, max_body: int = wire.MAX_BODY) -> tuple[dict[str, Any], bytes]:
        """Send one message, whose body may come in a piece of its own, and wait for one. Raises ChildDied, or wire.BadMessage
        for what is not a message."""
        try:
            await self._send(message)
            await self._send(body)
        except (OSError, anyio.ClosedResourceError):
            raise await self._died() from None
        prefix = await self._exactly(wire.PREFIX.size)
        header, rest = wire.sizes(prefix, max_body)
        text = await self._exactly(header)
        if len(text) < PARSED_HERE:
            return wire.parse(text), await self._exactly(rest)
        return await anyio.to_thread.run_sync(wire.parse, text), await self._exactly(rest)

    async def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self.sock.send(view) :]
            except BlockingIOError:
                await anyio.wait_writable(self.sock)

    async def _exactly(self, count: int) -> bytes:
        buffer = bytearray()
        while len(buffer) < count:
            try:
                data = self.sock.recv(min(1 << 20, count - len(buffer)))
            except BlockingIOError:
                with suppress(anyio.ClosedResourceError):  # the next look tells
                    await anyio.wait_readable(self.sock)
                continue
            except OSError:  # it was reset, or this end has been closed
                data = b""
            if not data:
                raise await self._died()
            buffer += data
        return bytes(buffer)

    async def _died(self) -> ChildDied:
        """Wait for the end of a child whose socket is closed, and say how it ended.

        A child that closed the socket itself is as good as ended.
        """
        with anyio.move_on_after(1.0):
            await self.ended.wait()
        if not self.ended.is_set():
            return ChildDied(None, int(signal.SIGKILL))
        if os.WIFSIGNALED(self.status):
            return ChildDied(None, os.WTERMSIG(self.status), self.processor_seconds)
        return ChildDied(os.WEXITSTATUS(self.status), None, self.processor_seconds)
