"""Programs of one launch that touch the same memory without atomics: on a GPU their order is open, on the CPU it is not.

A kernel is refused where it reads what another program of the launch has written, or writes another value over what another
program has read or written. Atomics may order programs in ways that are not followed here: after one, a launch is not watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from triton.runtime import interpreter as triton_interpreter

Array = np.ndarray[Any, Any]
_NOBODY, _SEVERAL = -1, -2
MAX_BYTES = 1 << 26
"""The most bytes of a storage that is followed; larger ones are not."""


class Race(Exception):
    """Two programs of a launch touch the same memory, and the result depends on their order."""


class Races:
    """Who read and wrote each address of a launch. `extents`: (start, end) of every storage, in the order of addresses."""

    def __init__(self, extents: Sequence[tuple[int, int]]) -> None:
        self._extents = extents
        self._readers: list[Array | None] = [None] * len(extents)
        self._writers: list[Array | None] = [None] * len(extents)
        self._given_up = False

    def give_up(self) -> None:
        """The launch uses atomics."""
        self._given_up = True

    def _table(self, tables: list[Array | None], index: int) -> Array | None:
        start, end = self._extents[index]
        if tables[index] is None and end - start <= MAX_BYTES:
            tables[index] = np.full(end - start, _NOBODY, dtype=np.int32)
        return tables[index]

    def _parts(self, addresses: Array, place: Array) -> list[tuple[int, Array, Array]]:
        """(storage, which of the addresses lie in it, their offsets)."""
        found = []
        for index in np.unique(place):
            mine = place == index
            found.append((int(index), mine, (addresses[mine] - np.uint64(self._extents[int(index)][0])).astype(np.int64)))
        return found

    def read(self, addresses: Array, place: Array, program: int) -> None:
        """A program reads. Raises Race."""
        if self._given_up:
            return
        for index, _, offsets in self._parts(addresses, place):
            writers = self._writers[index]
            if writers is not None:
                self._refuse(writers[offsets], program, "reads what {} wrote")
            readers = self._table(self._readers, index)
            if readers is not None:
                before = readers[offsets]
                readers[offsets] = np.where((before == _NOBODY) | (before == program), program, _SEVERAL)

    def write(self, addresses: Array, place: Array, program: int, values: Array) -> None:
        """A program is about to write. Raises Race."""
        if self._given_up:
            return
        for index, mine, offsets in self._parts(addresses, place):
            writers, readers = self._table(self._writers, index), self._readers[index]
            if writers is None:
                continue
            others = writers[offsets]
            foreign = (others != _NOBODY) & (others != program)
            if readers is not None:
                foreign |= (readers[offsets] != _NOBODY) & (readers[offsets] != program)
            if foreign.any():
                new = values[mine][foreign]
                there = np.ones(new.shape, dtype=bool)
                old = triton_interpreter._interpreter.load(addresses[mine][foreign], there, np.zeros_like(new), new.dtype)
                changed = np.zeros_like(foreign)
                changed[foreign] = _differ(old, new)
                whose = np.where(changed, np.where(others >= 0, others, _SEVERAL), _NOBODY)
                self._refuse(whose, program, "overwrites what {} used")
            writers[offsets] = program

    def _refuse(self, others: Array, program: int, what: str) -> None:
        foreign = (others != _NOBODY) & (others != program)
        if foreign.any():
            other = int(others[foreign][0])
            name = f"program {other}" if other >= 0 else "another"
            raise Race(f"program {program} {what.format(name)} without atomics: the result depends on their order")


def _differ(old: Array, new: Array) -> Array:
    size = old.dtype.itemsize
    return np.asarray(old.view(f"u{size}") != new.view(f"u{size}"))
