"""What a candidate prints while it is traced, for a person who judges one file.

It comes over a pipe of its own, is bounded, and is never parsed: no verdict rests on it, and no policy is shown it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import anyio.abc

MOST = 2000
"""The characters that are kept: the last ones."""
_BYTES_PER_CHARACTER = 4


class Words:
    """The last characters that children have printed."""

    def __init__(self) -> None:
        self._kept = b""
        self.cut = False
        """Whether there were more characters than are kept."""

    def add(self, data: bytes) -> None:
        """Take what was printed next."""
        most = MOST * _BYTES_PER_CHARACTER
        self._kept += data
        self.cut |= len(self._kept) > most
        self._kept = self._kept[-most:]

    @property
    def text(self) -> str:
        """What is kept, without control characters: a terminal would obey them."""
        text = self._kept.decode(errors="replace")
        self.cut |= len(text) > MOST
        return "".join(c if c.isprintable() or c == "\n" else " " for c in text[-MOST:])


class Ear:
    """A pipe into which one child prints. It is read until nobody can print any more, so that a child never waits for long. There
    is no pipe where no words are kept."""

    def __init__(self, words: Words | None) -> None:
        self._words = words
        self._read = -1
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()

    @contextmanager
    def offered(self, tasks: anyio.abc.TaskGroup) -> Iterator[tuple[int, ...]]:
        """The descriptor to print to, if there is one. It is closed here when the context is left; a child that was given a copy
        keeps that. tasks: those who read."""
        if self._words is None:
            yield ()
            return
        self._read, write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read, False)
        tasks.start_soon(self._listen, self._words)
        try:
            yield (write,)
        finally:
            os.close(write)

    async def close(self, seconds: float) -> None:
        """Wait until everything is read, but no longer than that: a child that cannot be ended may hold its end open."""
        if self._read < 0:
            return
        with anyio.move_on_after(seconds):
            await self._ended.wait()
        self._scope.cancel()

    async def _listen(self, words: Words) -> None:
        try:
            with self._scope:
                while data := await self._next():
                    words.add(data)
        finally:
            os.close(self._read)
            self._ended.set()

    async def _next(self) -> bytes:
        while True:
            await anyio.wait_readable(self._read)
            try:
                return os.read(self._read, 1 << 16)
            except BlockingIOError:
                continue
