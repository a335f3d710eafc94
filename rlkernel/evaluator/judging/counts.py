"""What one launch moves and computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

_Key = TypeVar("_Key")

ELSEWHERE = -1
"""In place of a storage's index: nobody knows which, because memory decides the addresses."""


@dataclass
class Counts:
    """Over the launch's whole grid; extrapolated from followed programs when the launch was dry."""

    programs: int = 0
    traffic: dict[int, float] = field(default_factory=dict)
    """Storage index (order of tensor arguments) -> bytes moved in 32-byte sectors, reads and writes."""
    stored: dict[int, float] = field(default_factory=dict)
    """Storage index -> bytes written, without sectors."""
    left_out: dict[int, float] = field(default_factory=dict)
    """Storage index -> bytes that masks leave out of blocks which are stored in part. Another program that does the same may
    leave out fewer of them."""
    first: dict[int, float] = field(default_factory=dict)
    """Storage index -> of the bytes moved, those that a program touches first, where it reads some again too late."""
    again: dict[int, float] = field(default_factory=dict)
    """Storage index -> of the bytes moved, those that a program reads again when no cache has them any more, see `cpu.reuse`."""
    flops: float = 0.0
    """On the general units, one per element and operation."""
    matrix_flops: dict[str, float] = field(default_factory=dict)
    """By operand type of `tl.dot`."""
    storages: list[int] = field(default_factory=list)
    """Identity of each storage, by its index."""
    largest: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The most that one program does, each on its own: bytes, operations, operations of products."""

    @property
    def work(self) -> tuple[float, float, float]:
        """Bytes, operations, operations of products."""
        return sum(self.traffic.values()), self.flops, sum(self.matrix_flops.values())

    def store(self, storage: int, written: int, masked: int) -> None:
        """Count a store that writes so many bytes, and leaves others out of its block."""
        self.stored[storage] = self.stored.get(storage, 0.0) + float(written)
        self.left_out[storage] = self.left_out.get(storage, 0.0) + float(masked)

    def add(self, other: Counts, factor: float) -> None:
        """Count what another one has counted, so many times."""
        _add(self.traffic, other.traffic, factor)
        _add(self.stored, other.stored, factor)
        _add(self.left_out, other.left_out, factor)
        _add(self.first, other.first, factor)
        _add(self.again, other.again, factor)
        _add(self.matrix_flops, other.matrix_flops, factor)
        self.flops += other.flops * factor
        largest, work = self.largest, other.work
        self.largest = (max(largest[0], work[0]), max(largest[1], work[1]), max(largest[2], work[2]))


def _add(mine: dict[_Key, float], theirs: dict[_Key, float], factor: float) -> None:
    for key, value in theirs.items():
        mine[key] = mine.get(key, 0.0) + value * factor
