"""The processor time of compilers. The kernel limits each process by itself, and ptxas is one of its own for each kernel."""

from __future__ import annotations

import os
import resource
import signal


def charge_children() -> None:
    """Count the processor time of what this process has started and waited for as its own: what it starts next has what is left.
    Ends this process as the kernel does where they took too much together."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY:
        return
    theirs, ours = (
        used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    )
    allowed = hard - 1  # as `processes.sandbox.limit` sets it
    if theirs + ours >= allowed:
        os.kill(os.getpid(), signal.SIGXCPU)
    resource.setrlimit(resource.RLIMIT_CPU, (max(1, min(soft, allowed - int(theirs))), hard))
