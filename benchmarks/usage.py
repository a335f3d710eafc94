"""The CPU time of this process and of everything it started, from the kernel's counters."""

from __future__ import annotations

import time
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """A reading; two of them make a `Load`."""

    wall: float
    parent: float
    """The CPU seconds of this process."""
    children: float
    """The CPU seconds of its descendants, those that have ended included, as far as a living one has waited for them."""

    @staticmethod
    def now() -> Usage:
        """Read the counters now, which takes milliseconds."""
        this = psutil.Process()
        own = this.cpu_times()
        children = 0.0
        for process in this.children(recursive=True):
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            children += times.user + times.system + times.children_user + times.children_system
        return Usage(time.perf_counter(), own.user + own.system, children)

    def since(self, start: Usage, cores: int) -> dict[str, float]:
        """The load since `start`.

        `parent` is how many cores the event loop kept busy, at most 1; `children` the same for all others; `share` the share of
        `cores`.
        """
        wall = max(self.wall - start.wall, 1e-9)
        parent, children = (self.parent - start.parent) / wall, (self.children - start.children) / wall
        return {"parent": parent, "children": children, "share": (parent + children) / cores}
