"""What this machine lets a command have."""

from __future__ import annotations

import os
from pathlib import Path


def memory_bytes(root: Path = Path("/")) -> int:
    """The bytes of memory that this process and its children may take: those of the machine, or of the control group around them
    that has the least, as in a container. root: where /proc and /sys are."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_limits(root)])


def _limits(root: Path) -> list[int]:
    """The limits of the control groups that this process is in, of both versions of these."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        mount, name = ("memory", "memory.limit_in_bytes") if controllers else (".", "memory.max")
        own = root / "sys/fs/cgroup" / mount
        # A container may see its own group as the root, whatever the path says.
        for place in (own, *(own.joinpath(*Path(path).parts[1:end]) for end in range(2, len(Path(path).parts) + 1))):
            try:
                found.append(int((place / name).read_text()))
            except (OSError, ValueError):  # not there, or "max"
                continue
    return found
