"""A bound on the processor time of code that somebody else has written and this process runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

INTERVAL = 1.0
"""After how many more seconds the same is raised again, in code that has caught it."""


class OutOfTime(BaseException):
    """The bound is reached. It is no Exception, so that code which is prepared for any of these does not go on."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside once this process has computed for so long. Only a main thread can be stopped so: in another
    one, and inside of a single call into C, nothing happens. Nor in a locked process, which has a bound of its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    _set(seconds)
    try:
        yield
    finally:
        _set(0.0)
        signal.signal(signal.SIGPROF, before)


def _set(seconds: float) -> None:
    with suppress(OSError):  # a locked process may set no timer
        signal.setitimer(signal.ITIMER_PROF, seconds, INTERVAL)
