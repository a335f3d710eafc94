"""A bound on the processor time of code that somebody else has written and this process runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Never

AGAIN = 0.5
"""After how many more seconds code is ended again that has caught the end."""


class OutOfTime(BaseException):
    """The bound is reached. It is no Exception, so that code which is prepared for any of these does not go on."""


@contextmanager
def bounded(seconds: float, end: Callable[[], Never]) -> Iterator[None]:
    """Call `end`, which raises, once this process has computed for so long inside, and again where that was caught. Only a main
    thread can be stopped so: in another one, and inside of a single call into C, nothing happens. Inside of another bound that
    one holds alone, and a locked process, which may set no timer, has an end of its own."""
    if threading.current_thread() is not threading.main_thread() or _is_set():
        yield
        return
    before = signal.signal(signal.SIGPROF, lambda number, frame: end())
    _set(seconds)
    try:
        yield
    finally:
        _set(0.0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside once this process has computed for so long, see `bounded`."""

    def stop() -> Never:
        raise OutOfTime

    with bounded(seconds, stop):
        yield


def _is_set() -> bool:
    with suppress(OSError):
        return signal.getitimer(signal.ITIMER_PROF)[0] > 0
    return False


def _set(seconds: float) -> None:
    with suppress(OSError):
        signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN)
