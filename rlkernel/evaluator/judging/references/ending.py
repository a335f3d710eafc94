"""A bound on what a reference computes where it is called in ways that its author has not tried, and may never end.

`while n != 0: n -= 4` ends from 4,096 rows and not from 6, and `while x.max() > 1: x = x / 2` ends for no infinity. Such a call
is given up, like one that the reference refuses: whatever was to be learned from it is not. Processor time is bounded, which no
other process changes, and by so much more than a usual call takes that no call comes near it which ends. Source: ours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Never

from rlkernel import processor_time

MOST_TIMES = 20.0
"""How many times the processor time of what is usual there may be, where that is short."""
MOST_MORE = 20.0
"""The seconds by which it may be more than twice what is usual, where that is long."""
FEWEST_SECONDS = 2.0
"""The seconds that a round may take, whatever is usual."""
FEWEST_AT_OTHER_SIZES = 20.0
"""The seconds that a trace or a study at other sizes may take, whose usual time is not always known."""


class Endless(Exception):
    """What was called has not ended in time."""


class Usual:
    """The processor time of what a reference is known to do, and what anything else may take besides."""

    def __init__(self, fewest: float | None = None) -> None:
        """fewest: the seconds that anything may take; half of that once something has not ended, so that many ways to call a
        reference that ends in none of them take no longer than two."""
        self._seconds, self._fewest = 0.0, FEWEST_SECONDS if fewest is None else fewest

    @contextmanager
    def measured(self) -> Iterator[None]:
        """What is inside is usual."""
        since = time.process_time()
        try:
            yield
        finally:
            self._seconds = max(self._seconds, time.process_time() - since)

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """What is inside raises Endless once it has taken far more than is usual, see `processor_time.bounded`."""
        most = max(self._fewest, min(MOST_TIMES * self._seconds, 2 * self._seconds + MOST_MORE))

        def end() -> Never:
            self._fewest /= 2
            raise Endless(f"it has not ended after {most:.0f} s of processor time")

        with processor_time.bounded(most, end):
            yield
