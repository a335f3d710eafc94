"""How children spend their time. What a child computes is limited by its processor time, so that no verdict depends on what else
the machine does; what only waits is ended by the looks of this module.

A look reads a process's state and its processor time. A process that neither runs nor wants to, and that has computed nothing
since the look before, has waited in between. One that wants to run and is not let counts as running, and so does one that waits
for a disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import anyio
import anyio.abc

BACKSTOP = 10
"""Seconds of wall clock for each second of processor time, after which a child is ended whatever it does."""
LOOK_SECONDS = 0.25
"""Seconds between two looks at a child."""
_BUSY = frozenset("RD")
"""States of processes that run or want to, or wait for a disk (proc_pid_stat(5))."""


class HasNumber(Protocol):
    """A process whose number is 0 until it has started."""

    pid: int


def look(pid: int) -> tuple[bool, int] | None:
    """Whether a process runs or wants to, and its processor time in ticks; None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0] in _BUSY, int(fields[11]) + int(fields[12])


@contextmanager
def waiting_at_most(seconds: float, child: HasNumber, tasks: anyio.abc.TaskGroup) -> Iterator[anyio.CancelScope]:
    """Cancel what is inside once the child has waited for so many seconds in all. `tasks`: where the looks take place."""
    with anyio.CancelScope() as inside, anyio.CancelScope() as looks:
        tasks.start_soon(_look_on, seconds, child, inside, looks)
        try:
            yield inside
        finally:
            looks.cancel()


async def _look_on(seconds: float, child: HasNumber, inside: anyio.CancelScope, looks: anyio.CancelScope) -> None:
    """Look at the child until `looks` is cancelled, and cancel `inside` where it has waited for too long. A look counts for no
    more than the time between two, however late this process is."""
    waited, before = 0.0, 0
    while not looks.cancel_called:
        await anyio.sleep(LOOK_SECONDS)
        if not child.pid:
            continue
        found = look(child.pid)
        if found is None:
            return
        busy, ticks = found
        waited += LOOK_SECONDS if not busy and ticks == before else 0.0
        before = ticks
        if waited > seconds and not looks.cancel_called:
            inside.cancel()
            return
