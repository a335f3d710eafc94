"""Where wall-clock time goes when things overlap: `Busy` counts the seconds in which at least one of them went on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio


class Busy:
    """Counts the seconds in which at least one thing went on: ten overlapping evaluations of one second each are one busy second.

    It belongs to one event loop, and not to several threads."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._since = 0.0
        self._active = 0
        self._changed = anyio.Event()
        self.watchers: list[Callable[[], None]] = []
        """Functions that are called after each change."""

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            self.end()

    def begin(self) -> None:
        if self._active == 0:
            self._since = time.perf_counter()
        self._active += 1
        self._notify()

    def end(self) -> None:
        self._active -= 1
        if self._active == 0:
            self._seconds += time.perf_counter() - self._since
        self._notify()

    @property
    def active(self) -> int:
        """How many things are going on now."""
        return self._active

    async def changed(self) -> None:
        """Wait until the next thing begins or ends."""
        await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
        for watcher in self.watchers:
            watcher()

    @property
    def seconds(self) -> float:
        """Busy seconds so far, what is still going on included."""
        return self._seconds + (time.perf_counter() - self._since if self._active else 0.0)
