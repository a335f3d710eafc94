"""Programs of one launch that touch the same memory in no fixed order: on a GPU their order is open, on the CPU it is not.

A kernel is refused where it reads what another program of the launch has written, or writes another value over what another
program has read or written, unless atomics order the two. They do as in the C++ memory model that PTX follows: an atomic on one
word that releases hands on all that its program has done and knows, and one that acquires the same word later takes it over. An
atomic on many words at once orders nothing, and neither does a relaxed one. A read of a single word, or a volatile one, that
meets an atomic counts as an atomic that acquires: it waits for a flag.

The elements of one store are in no order either: those that meet at an address must bring the same value.

Each program is cut into *segments* by its releases. A table per storage has, for each word, the segment or the group of segments
that touched it last; a program knows a set of segments, which is an integer with one bit for each.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from triton.runtime import interpreter as triton_interpreter

Array = np.ndarray[Any, Any]
_NOBODY, _SEVERAL = 0, 1
"""What stands in a table for a word that nobody has touched, and for one that too many have. The system gives memory for zeros
when they are written, so that a table takes no more than what is touched."""
MAX_SEGMENTS = 1 << 20
"""The most segments and groups of a launch; one that has more is refused."""
MAX_BITS = 1 << 32
"""The most bits that sets of segments may take in all; the same."""


class Race(Exception):
    """Two programs of a launch touch the same memory, and the result depends on their order."""


class TooManyAtomics(Exception):
    """So many atomics of a launch order programs that what they order cannot be followed."""

    def __init__(self) -> None:
        super().__init__(
            "too many atomics on single words to follow what they order; use fewer, atomics on blocks, or sem='relaxed' on words "
            "that order nothing"
        )


class Use(enum.IntEnum):
    """What a program does to a word: the number of its table."""

    READ, WRITTEN, ATOMIC = range(3)


class _Storage:
    """Who touched each word of a storage. A word is as wide as the narrowest access so far, in bytes."""

    def __init__(self, start: int, end: int) -> None:
        self._start, self._bytes, self._width = np.uint64(start), end - start, 0
        self._tables: list[Array | None] = [None, None, None]

    def words(self, addresses: Array, width: int) -> Array:
        """The words at these addresses; several in a row for each, where a word is narrower."""
        offsets = (addresses - self._start).astype(np.int64)
        if width != self._width or width > 1:
            aligned = width & -width if not np.bitwise_or.reduce(offsets) & (width - 1) else 1
            if aligned < self._width or not self._width:
                self._narrow(aligned)
        found = offsets // self._width
        if width == self._width:
            return found
        return np.asarray((found[:, None] + np.arange(width // self._width)).reshape(-1))

    def _narrow(self, width: int) -> None:
        factor = self._width // width
        self._tables = [table if table is None else np.repeat(table, factor) for table in self._tables]
        self._width = width

    def seen(self, use: Use) -> Array | None:
        return self._tables[use]

    def table(self, use: Use) -> Array:
        table = self._tables[use]
        if table is None:
            table = self._tables[use] = np.zeros(-(-self._bytes // self._width), dtype=np.int32)
        return table


class Races:
    """Who touched each word of a launch. `extents`: (start, end) of every storage, in the order of addresses."""

    def __init__(self, extents: Sequence[tuple[int, int]]) -> None:
        self._storages = [_Storage(start, end) for start, end in extents]
        self._programs = [-1, -1]
        """The program of each segment and group; -1: several."""
        self._groups: dict[int, int] = {}
        """The segments of each group, by its number."""
        self._joined: dict[tuple[int, int], int] = {}
        self._released: dict[int, int] = {}
        """Address -> the segments that whoever acquires it comes to know."""
        self._ordered = np.zeros(64, dtype=bool)
        """Whether all of a segment or group comes before what the program that runs does now, and `_NOBODY` always."""
        self._left: dict[int, tuple[int, int]] = {}
        """What each program that does not run now knows, and its segment."""
        self._known = self._now = 0
        """What the running program knows, and its segment; 0: no program runs."""
        self._touched = False
        """Whether the running segment has done more than atomics."""
        self._atomics = False
        """Whether a program has used an atomic."""

    def enter(self, program: int) -> None:
        """From now on this program runs, for the first time or again."""
        if self._now and self._programs[self._now] == program:
            return
        if self._now:
            self._left[self._programs[self._now]] = self._known, self._now
        self._ordered[:] = False
        self._ordered[_NOBODY] = True
        if program in self._left:
            self._known, self._now = self._left.pop(program)
            self._ordered[self._now] = self._touched = True
        else:
            self._known = 0
            self._begin(program)

    def leave(self) -> None:
        """The running program has ended."""
        self._known = self._now = 0

    def _begin(self, program: int) -> None:
        """A segment of this program begins."""
        self._now = self._number(program)
        self._known |= 1 << self._now
        self._ordered[self._now] = True
        self._touched = False

    def _number(self, program: int) -> int:
        number = len(self._programs)
        if number >= MAX_SEGMENTS or number * (len(self._groups) + len(self._released)) > MAX_BITS:
            raise TooManyAtomics
        self._programs.append(program)
        if number >= len(self._ordered):
            self._ordered = np.concatenate([self._ordered, np.zeros_like(self._ordered)])
        return number

    def _strangers(self, before: Array) -> Array | None:
        """Which of the words were touched by what is not known to come before; None: none."""
        known = self._ordered[before]
        if known.all():
            return None
        if self._known & (self._known - 1):  # something of another segment
            for number in np.unique(before[~known]).tolist():
                parts = self._groups.get(number, 1 << number)
                self._ordered[number] = number != _SEVERAL and not parts & ~self._known
            known = self._ordered[before]
            if known.all():
                return None
        return np.logical_not(known)

    def _join(self, before: int) -> int:
        """The group of those that have touched a word, and of the segment that does so now."""
        if not self._atomics or before == _SEVERAL:
            return _SEVERAL
        key = before, self._now
        if key not in self._joined:
            number = self._joined[key] = self._number(-1)
            self._groups[number] = self._groups.get(before, 1 << before) | 1 << self._now
        return self._joined[key]

    def _note(self, table: Array, words: Array) -> None:
        """The running segment touches these words, beside those of whom nobody knows that they come before."""
        before = table[words]
        strangers = self._strangers(before)
        table[words] = self._now
        if strangers is not None:
            for number in np.unique(before[strangers]).tolist():
                table[words[before == number]] = self._join(number)

    def read(self, storage: int, addresses: Array, width: int, *, volatile: bool = False) -> None:
        """A program reads. Raises Race, TooManyAtomics."""
        place, words = self._find(storage, addresses, width)
        if (atomics := place.seen(Use.ATOMIC)) is not None and (volatile or addresses.size == 1):
            for address in addresses.tolist() if self._strangers(atomics[words]) is not None else ():
                self._known |= self._released.get(address, 0)
        for use in (Use.WRITTEN, Use.ATOMIC):
            self._refuse(place, use, words, "reads what {} wrote")
        self._note(place.table(Use.READ), words)
        self._touched = True

    def write(self, storage: int, addresses: Array, width: int, values: Callable[[], Array]) -> None:
        """A program is about to write. Raises Race, TooManyAtomics."""
        place, words = self._find(storage, addresses, width)
        for use in Use:
            table = place.seen(use)
            if table is not None and self._strangers(table[words]) is not None:
                changed = np.repeat(_changes(addresses, values()), len(words) // len(addresses))
                self._refuse(place, use, words[changed], "overwrites what {} used")
        place.table(Use.WRITTEN)[words] = self._now
        self._touched = True

    def stored(self, addresses: Array, values: Callable[[], Array]) -> None:
        """A program has written these values by one store: lanes that meet at an address must agree. Raises Race."""
        in_order = addresses.size < 2 or bool((addresses[1:] > addresses[:-1]).all())  # as nearly always: none meet
        if not in_order and bool(_changes(addresses, values()).any()):
            raise Race("several elements of one store write different values to one address: the result depends on their order")

    def atomic(self, storage: int, addresses: Array, width: int, *, acquires: bool, releases: bool) -> None:
        """A program is about to change words by an atomic. Raises Race, TooManyAtomics."""
        self._atomics = True
        place, words = self._find(storage, addresses, width)
        address = int(addresses[0])
        if acquires and addresses.size == 1:
            self._known |= self._released.get(address, 0)
        for use in (Use.READ, Use.WRITTEN):
            self._refuse(place, use, words, "changes what {} used")
        read = place.seen(Use.READ)
        if read is not None:  # a loop that reads a word and tries to exchange it has read nothing that matters
            read[words] = _NOBODY
        self._note(place.table(Use.ATOMIC), words)
        if releases and addresses.size == 1:
            self._released[address] = self._released.get(address, 0) | self._known
            if self._touched:
                self._begin(self._programs[self._now])

    def unwritten(self, storage: int) -> bool:
        """Whether programs have left a word of a storage as it was, but for atomics."""
        written = self._storages[storage].seen(Use.WRITTEN)
        return written is None or not written.all()

    def _find(self, storage: int, addresses: Array, width: int) -> tuple[_Storage, Array]:
        place = self._storages[storage]
        return place, place.words(addresses, width)

    def _refuse(self, place: _Storage, use: Use, words: Array, what: str) -> None:
        table = place.seen(use)
        before = None if table is None else table[words]
        if before is None or (strangers := self._strangers(before)) is None:
            return
        program, other = self._programs[self._now], self._programs[int(before[strangers][0])]
        name = f"program {other}" if other >= 0 else "another"
        order = "without an atomic that orders them" if self._atomics else "without atomics"
        raise Race(f"program {program} {what.format(name)} {order}: the result depends on their order")


def _changes(addresses: Array, new: Array) -> Array:
    """Which of the values differ from those that lie there, bit by bit."""
    there = np.ones(new.shape, dtype=bool)
    old = triton_interpreter._interpreter.load(addresses, there, np.zeros_like(new), new.dtype)
    unsigned = f"u{new.dtype.itemsize}"
    return np.asarray(old.view(unsigned) != new.view(unsigned))
