"""Find what a pool leaves behind (processes, files, GPU memory) by a snapshot before and a comparison after."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import psutil

from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.cards.gpus import Gpu

OURS = ("pwned", ".bashrc")
"""The beginnings of names that only the red team writes; other new names may be anybody's."""
SAMPLE_SECONDS = 0.5
SETTLE_SECONDS = 3.0


def places() -> tuple[Path, ...]:
    """The folders into which candidates try to write."""
    folders = (Path("/tmp"), Path("/dev/shm"), Path.home(), Path.cwd())
    return tuple(dict.fromkeys(folder.resolve() for folder in folders if folder.is_dir()))


def entries() -> dict[str, tuple[int, int]]:
    """The size and time of change of everything directly in `places`, by path."""
    found = {}
    for folder in places():
        with os.scandir(folder) as listing:
            for entry in listing:
                try:
                    stat = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # somebody else's, already gone
                    continue
                found[entry.path] = (0 if entry.is_dir(follow_symlinks=False) else stat.st_size, stat.st_mtime_ns)
    return found


@dataclass
class Watch:
    """A record of every process that this one has had below it, as (pid, start time), so that what detaches itself is still
    known."""

    seen: set[tuple[int, float]] = field(default_factory=set)

    def look(self) -> None:
        for process in psutil.Process().children(recursive=True):
            try:
                self.seen.add((process.pid, process.create_time()))
            except psutil.NoSuchProcess:
                continue

    async def forever(self) -> None:
        while True:
            self.look()
            await anyio.sleep(SAMPLE_SECONDS)

    def alive(self) -> list[str]:
        """The pid and command of every recorded process that still runs, and of every present descendant."""
        self.look()
        found = []
        for pid, started in sorted(self.seen):
            try:
                process = psutil.Process(pid)
                if process.create_time() == started and process.status() != psutil.STATUS_DEAD:
                    found.append(f"{pid} {process.status()} {' '.join(process.cmdline())[:80]}")
            except psutil.NoSuchProcess:
                continue
        return found


@dataclass(frozen=True, slots=True)
class Before:
    """A snapshot of the machine before a pool was opened."""

    files: dict[str, tuple[int, int]]
    gpu_bytes: dict[str, int | None]
    own_bytes: int

    @staticmethod
    def now(cards: Sequence[Gpu]) -> Before:
        memory = {card.uuid: gpus.read(card).used_bytes for card in cards}
        return Before(entries(), memory, psutil.Process().memory_info().rss)


GPU_TOLERANCE = 64 << 20
"""The bytes that a driver may keep of its own accord once it has been used."""


def _compare(before: Before, watch: Watch, cards: Sequence[Gpu], folder: Path) -> dict[str, Any]:
    after = Before.now(cards)
    changed = sorted(path for path, stat in after.files.items() if before.files.get(path) != stat)
    ours = [path for path in changed if Path(path).name.startswith(OURS)] + [str(path) for path in folder.iterdir()]
    gained = {uuid: (used or 0) - (before.gpu_bytes[uuid] or 0) for uuid, used in after.gpu_bytes.items()}
    left = [f"process {line}" for line in watch.alive()] + [f"file {path}" for path in ours]
    left += [f"GPU {uuid}: {extra >> 20} MiB more in use" for uuid, extra in gained.items() if extra > GPU_TOLERANCE]
    return {
        "left": left,
        "gpu_bytes": gained,
        "own_bytes": after.own_bytes - before.own_bytes,
        "processes_seen": len(watch.seen),
        "files_of_others": [path for path in changed if path not in ours and path not in before.files],
    }


async def compare(before: Before, watch: Watch, cards: Sequence[Gpu], folder: Path) -> dict[str, Any]:
    """What is there now that was not there before: `left` are reasons to fail, the rest is for the reader. `folder` must be
    empty.

    It looks again for up to `SETTLE_SECONDS`, as a driver takes a moment to give memory back; `settled_s` says how long it took.
    """
    start = time.perf_counter()
    while True:
        found = _compare(before, watch, cards, folder)
        waited = time.perf_counter() - start
        if not found["left"] or waited > SETTLE_SECONDS:
            return {**found, "settled_s": waited}
        await anyio.sleep(0.1)
