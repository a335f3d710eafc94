"""A device that several processes use side by side, and that one of them has alone while it times."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


class Quiet:
    """One process's end, by two lock files at `path`; without a path the whole device is the caller's.

    Whoever wants to be alone waits until the others want it too or have finished, and nobody new begins before it.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: IO[str] | None = None

    @contextmanager
    def shared(self) -> Iterator[None]:
        """While this process uses the device beside others."""
        if not self._path:
            yield
            return
        with open(self._path, "w") as file:
            self._share(file)
            self._file = file
            try:
                yield
            finally:
                self._file = None
                fcntl.flock(file, fcntl.LOCK_UN)  # a process that was forked inside may still have it open

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While nobody else uses the device; inside of `shared`."""
        if self._file is None:
            yield
            return
        fcntl.flock(self._file, fcntl.LOCK_UN)
        with self._turn():
            fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._share(self._file)

    def _share(self, file: IO[str]) -> None:
        with self._turn():
            fcntl.flock(file, fcntl.LOCK_SH)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """While this process is the next that gets the device."""
        with open(self._path + ".turn", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
