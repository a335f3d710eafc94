"""What a program reads again so late that the L2 cache no longer has it: while a launch is priced.

The programs that run at once share the cache. Between two touches of the same bytes by one program, each of them moves about as
much as that one. Where this is more than the cache holds, a part of what is touched again comes from memory once more:

    moved between   W = sum over storages of min(size, programs at once x bytes that one program has moved there between)
    from memory     1 - cache / W of these bytes, where W is larger than the cache

Example: 132 programs that go through 256 MiB twice, because all wait for each other in between, read nearly all of it twice. Rows
of 32 KiB that each program reads three times are read once. What several programs read is the business of `roofline`.

Loops that pricing shortens (`loops`) hide most addresses: what is known of a storage's touches is taken for all. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlkernel.evaluator.judging.costs.counts import ELSEWHERE, Counts

Array = np.ndarray[Any, Any]
SECTOR = 32
"""Bytes that memory moves at least."""
MOST_HELD = 1 << 22
"""Sectors of one program that are remembered, 32 MiB; where later accesses go is taken for unknown."""


@dataclass
class _Touch:
    """An access of the program that is followed, to addresses that are known."""

    storage: int
    sectors: Array
    moved: Array
    """Bytes that the program had moved of each storage before."""
    times: float = 1.0
    """How often it is made, where it stands for the turns of loops."""


class Reuse:
    """The touches of one program at a time. `sizes`: bytes of each storage; `programs`: how many run at once; `cache`: bytes."""

    def __init__(self, sizes: Sequence[int] = (), programs: float = 1.0, cache: float = np.inf) -> None:
        self._sizes, self._programs, self._cache = np.array(sizes, dtype=np.float64), programs, cache
        self.begin()

    def begin(self) -> None:
        """Another program begins."""
        self._touches: list[_Touch] = []
        self._held = 0
        self._moved = np.zeros_like(self._sizes)
        self._turns: list[tuple[int, Array]] = []

    def touch(self, storage: int, sectors: Array | None, moved: float) -> None:
        """The program moves so many bytes of a storage; `sectors`: which, in units of `SECTOR`, if that is known."""
        if not np.isfinite(self._cache) or storage == ELSEWHERE:
            return
        if sectors is not None and self._held + sectors.size <= MOST_HELD:
            self._held += sectors.size
            self._touches.append(_Touch(storage, sectors, self._moved.copy()))
        self._moved[storage] += moved

    def begin_turn(self) -> None:
        """A turn of a loop begins that stands for others."""
        self._turns.append((len(self._touches), self._moved.copy()))

    def end_turn(self, times: int) -> None:
        """The turn that began last has ended, and stands for so many."""
        first, before = self._turns.pop()
        for touch in self._touches[first:]:
            touch.times *= times
        self._moved += (times - 1) * (self._moved - before)

    def count(self, counts: Counts) -> None:
        """Note in the program's counts what comes from memory once more, and what it touches first."""
        if self._between(self._moved[None])[0] <= self._cache:
            return
        for storage in {touch.storage for touch in self._touches}:
            touches = [touch for touch in self._touches if touch.storage == storage]
            first, again = self._apart(touches)
            known = SECTOR * sum(touch.times * touch.sectors.size for touch in touches)
            share = counts.traffic.get(storage, 0.0) / max(1.0, known)
            if again > 0:
                counts.first[storage], counts.again[storage] = share * first, share * again

    def _between(self, moved: Array) -> Array:
        """Bytes that all programs move at once while one moves these: (touches, storages) -> (touches,)."""
        return np.asarray(np.minimum(self._sizes, self._programs * moved).sum(axis=1))

    def _apart(self, touches: list[_Touch]) -> tuple[float, float]:
        """The bytes of one storage that `touches` meet first, and those that later touches take from memory again."""
        times = np.array([touch.times for touch in touches])
        owners = np.repeat(np.arange(len(touches)), [touch.sectors.size for touch in touches])
        sectors = np.concatenate([touch.sectors for touch in touches])
        order = np.argsort(sectors, kind="stable")
        owners, met = owners[order], sectors[order][1:] == sectors[order][:-1]
        first = SECTOR * float(times[owners[np.concatenate([[True], ~met])]].sum())
        pairs, counts = np.unique(np.stack([owners[:-1][met], owners[1:][met]]), axis=1, return_counts=True)
        if not counts.size:
            return first, 0.0
        moved = np.stack([touch.moved for touch in touches])
        between = self._between(moved[pairs[1]] - moved[pairs[0]])
        missed = np.maximum(0.0, 1.0 - self._cache / np.maximum(between, 1.0))
        return first, SECTOR * float((missed * counts * times[pairs[1]]).sum())
