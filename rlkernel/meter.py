"""Wall-clock time during which at least one of many overlapping things was going on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from rlkernel.interfaces import Evaluator
    from rlkernel.types import Evaluation, Problem


class Busy:
    """Ten overlapping evaluations of one second each are one busy second. For one event loop, not for several threads."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._since = 0.0
        self._active = 0
        self._changed = anyio.Event()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if self._active == 0:
            self._since = time.perf_counter()
        self._active += 1
        self._notify()
        try:
            yield
        finally:
            self._active -= 1
            self._notify()
            if self._active == 0:
                self._seconds += time.perf_counter() - self._since

    @property
    def active(self) -> int:
        """How many are going on now."""
        return self._active

    async def changed(self) -> None:
        """Until the next one begins or ends."""
        await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    @property
    def seconds(self) -> float:
        """Total so far."""
        return self._seconds + (time.perf_counter() - self._since if self._active else 0.0)


@dataclass(frozen=True)
class MeteredEvaluator:
    """An evaluator that records when it is busy."""

    inner: Evaluator
    busy: Busy

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        with self.busy():
            return await self.inner.evaluate(problem, code)
