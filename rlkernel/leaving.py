"""The end of a process in which a call still runs that nobody waits for."""

from __future__ import annotations

import atexit
import os
import sys
import threading

_left: list[threading.Thread] = []


def nobody_waits_for(thread: threading.Thread) -> None:
    """Note a daemon whose call was given up, so that `leave` knows of it for as long as it runs."""
    _left[:] = [other for other in (*_left, thread) if other.is_alive()]


def leave(status: int) -> int:
    """The exit status of a command that has nothing left to do; the process ends here if a call was given up and still runs.

    The interpreter's own end would stop that call's thread as soon as it wants the interpreter's lock. In the C++ of torch, that
    aborts the process, with a status of its own.
    """
    if any(thread.is_alive() for thread in _left):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status
