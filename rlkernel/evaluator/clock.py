"""How long each stage of an evaluation takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

from rlkernel.types import Seconds

OnStage = Callable[[str], AbstractContextManager[object]]
"""Stage, a field of `rlkernel.types.Seconds` -> the context in which it takes place."""


class Clock:
    """Measures the wall-clock seconds of each stage. on_stage: a context in which each stage takes place, e.g. to tell of it."""

    def __init__(self, on_stage: OnStage = nullcontext) -> None:
        self._on_stage = on_stage
        self.start = time.perf_counter()
        self.seconds = Seconds()

    @property
    def now(self) -> Seconds:
        return replace(self.seconds, total=time.perf_counter() - self.start)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time inside to the stage `name`, however it ends."""
        since = time.perf_counter()
        try:
            with self._on_stage(name):
                yield
        finally:
            spent = getattr(self.seconds, name) + time.perf_counter() - since
            self.seconds = replace(self.seconds, **{name: spent})
