"""What one launch moves and computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

_Key = TypeVar("_Key")

ELSEWHERE = -1
"""In place of a storage's index: nobody knows which, because memory decides the addresses."""

ATOMICS_PER_US = 2000.0
"""Atomics on one word, which wait for one another: about one in a cycle of the L2 cache."""
ATOMIC_BYTES = 64.0
"""Bytes that move through the L2 cache in the time of an atomic on a word of its own: about 100 units of the cache change one in
a cycle each, which is half the rate at which they are read."""
HANDED_ON = 1000.0
"""Atomics in the time in which a lock goes from one program to the next: two ways through the L2 cache."""
MOST_WORDS = 16
"""Words of one block of atomics that are counted: those that most of its atomics meet at."""

SHARED = 8
"""Elements of a block for each one of a value that they share."""


@dataclass
class Counts:
    """Over the launch's whole grid; extrapolated from followed programs when the launch was dry."""

    programs: int = 0
    traffic: dict[int, float] = field(default_factory=dict)
    """Storage index (order of tensor arguments) -> bytes moved in 32-byte sectors, reads and writes."""
    spanned: dict[int, float] = field(default_factory=dict)
    """Storage index -> bytes moved, without those before the first and behind the last element of an access in each sector."""
    apart: dict[int, float] = field(default_factory=dict)
    """The bytes of these that are read, where what several programs read by one access counts once: at least all that is read."""
    stored: dict[int, float] = field(default_factory=dict)
    """Storage index -> bytes written, without sectors."""
    left_out: dict[int, float] = field(default_factory=dict)
    """Storage index -> bytes that masks leave out of blocks which are stored in part. Another program that does the same may
    leave out fewer of them."""
    by_chance: dict[int, float] = field(default_factory=dict)
    """Storage index -> by how many bytes what is written may be too few because few programs were followed, and these differ."""
    first: dict[int, float] = field(default_factory=dict)
    """Storage index -> of the bytes moved, those that a program touches first, where it reads some again too late."""
    again: dict[int, float] = field(default_factory=dict)
    """Storage index -> of the bytes moved, those that a program reads again when no cache has them any more, see `cpu.reuse`."""
    flops: float = 0.0
    """On the general units, in units of half a multiply-add: one for an addition, more for what takes longer."""
    matrix_flops: dict[str, float] = field(default_factory=dict)
    """By operand type of `tl.dot`, each as often as its precision needs it: three products of tf32 for one of tf32x3."""
    operations: float = 0.0
    """All of them, each once: neither what some take longer, as those of float64, nor further products of parts count."""
    on_floats: float = 0.0
    """The operations on floating-point numbers, and all of `tl.dot`; they are a part of `operations`."""
    dots: float = 0.0
    """The operations of `tl.dot`; they are a part of `on_floats`."""
    lanes: float = 0.0
    """Elements of the blocks that are stored, those that masks leave out, too."""
    perhaps: float = 0.0
    """Those of them that a branch stores of which memory decides whether it is taken."""
    loaded: float = 0.0
    """Elements of the blocks that are loaded, those that masks leave out, too."""
    inside: float = 0.0
    """Elements of the blocks that are loaded, as far as masks leave them in."""
    widest: int = 0
    """The elements of the largest block that is stored."""
    by_elements: dict[float, float] = field(default_factory=dict)
    """Elements of a value -> the floating-point operations on values of so many; without products."""
    atomics: dict[int, float] = field(default_factory=dict)
    """Address -> the atomics on the word that lies there: of the words that most of them meet at."""
    scattered: dict[int, float] = field(default_factory=dict)
    """Storage index -> bytes of the words that atomics change and that memory chooses."""
    storages: list[int] = field(default_factory=list)
    """Identity of each storage, by its index."""
    largest: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The most that one program does, each on its own: bytes, operations, operations of products."""
    deepest: float = 0.0
    """The cycles that the operations of one program wait for one another, at most, see `cpu.latency`."""
    waited: float = 0.0
    """The same of all programs, added."""

    @property
    def queue(self) -> float:
        """The most atomics that wait for one another, because they change one word."""
        return max(self.atomics.values(), default=0.0)

    @property
    def work(self) -> tuple[float, float, float]:
        """Bytes, operations, operations of products."""
        return sum(self.traffic.values()), self.flops, sum(self.matrix_flops.values())

    @property
    def of_products(self) -> float:
        """The operations that may be those of products: of a kernel with `tl.dot`, none that only lead to its elements."""
        return self.on_floats if self.dots else self.operations

    def compute(self, operations: float, slower: float = 1.0, *, floats: bool = False) -> None:
        """Count operations on the general units, which take so many times as long as an addition."""
        self.operations += operations
        if floats:
            self.on_floats += operations
            self.by_elements[operations] = self.by_elements.get(operations, 0.0) + operations
        self.flops += slower * operations

    @property
    def for_elements(self) -> float:
        """The floating-point operations but for those on a value that several elements of a stored block share, such as a factor
        of its row: a larger block has as many of them."""
        shared = (done for size, done in self.by_elements.items() if size * SHARED <= self.widest or size == 1 < self.widest)
        return self.on_floats - sum(shared)

    @property
    def for_larger(self) -> float:
        """The floating-point operations on values larger than any block that is stored, as of what is added up or counted."""
        return sum(done for size, done in self.by_elements.items() if size > self.widest)

    def queue_up(self, addresses: np.ndarray[Any, Any], each: float) -> None:
        """Count an atomic for each of these addresses, which takes as long as so many do."""
        found, times = np.unique(addresses, return_counts=True)
        most = np.argsort(-times, kind="stable")[:MOST_WORDS]
        _add(self.atomics, dict(zip(found[most].tolist(), times[most].tolist(), strict=True)), each)

    def move(self, storage: int, moved: float, *, spanned: float | None = None, apart: float | None = None) -> None:
        """Count an access to so many bytes. spanned, apart: what it adds to these; None for all of them."""
        for counts, more in ((self.traffic, moved), (self.spanned, spanned), (self.apart, apart)):
            counts[storage] = counts.get(storage, 0.0) + (moved if more is None else more)

    def store(self, storage: int, written: int, masked: int) -> None:
        """Count a store that writes so many bytes, and leaves others out of its block."""
        self.stored[storage] = self.stored.get(storage, 0.0) + float(written)
        self.left_out[storage] = self.left_out.get(storage, 0.0) + float(masked)

    def scatter(self, storage: int, addresses: np.ndarray[Any, Any], width: int) -> None:
        """Count an atomic for each of these addresses, which memory chooses: made-up ones, of which neighbours lie beside one
        another where the real ones do."""
        self.scattered[storage] = self.scattered.get(storage, 0.0) + float(addresses.size * width)
        beside = int((np.diff(addresses.astype(np.int64)) == width).sum())
        self.move(storage, (ATOMIC_BYTES - width) * (addresses.size - beside) + width * beside)  # an access of theirs is counted

    def add(self, other: Counts, factor: float) -> None:
        """Count what another one has counted, so many times."""
        _add(self.traffic, other.traffic, factor)
        _add(self.spanned, other.spanned, factor)
        _add(self.apart, other.apart, factor)
        _add(self.stored, other.stored, factor)
        _add(self.left_out, other.left_out, factor)
        _add(self.first, other.first, factor)
        _add(self.again, other.again, factor)
        _add(self.matrix_flops, other.matrix_flops, factor)
        _add(self.atomics, other.atomics, factor)
        _add(self.scattered, other.scattered, factor)
        self.flops += other.flops * factor
        self.operations += other.operations * factor
        self.on_floats += other.on_floats * factor
        self.dots += other.dots * factor
        self.lanes += other.lanes * factor
        self.perhaps += other.perhaps * factor
        self.loaded += other.loaded * factor
        self.inside += other.inside * factor
        self.deepest = max(self.deepest, other.deepest)
        self.waited += other.waited * factor
        largest, work = self.largest, other.work
        self.largest = (max(largest[0], work[0]), max(largest[1], work[1]), max(largest[2], work[2]))


def _add(mine: dict[_Key, float], theirs: dict[_Key, float], factor: float) -> None:
    for key, value in theirs.items():
        mine[key] = mine.get(key, 0.0) + value * factor
