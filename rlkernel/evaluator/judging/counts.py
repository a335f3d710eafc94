"""What one launch moves and computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

K = TypeVar("K")


def _sum(one: dict[K, float], other: dict[K, float]) -> dict[K, float]:
    return {key: one.get(key, 0.0) + other.get(key, 0.0) for key in one.keys() | other.keys()}


@dataclass
class Counts:
    """Over the launch's whole grid; extrapolated from followed programs when the launch was dry."""

    programs: int = 0
    traffic: dict[int, float] = field(default_factory=dict)
    """Storage index (order of tensor arguments) -> bytes moved in 32-byte sectors, reads and writes."""
    stored: dict[int, float] = field(default_factory=dict)
    """Storage index -> bytes written, without sectors."""
    flops: float = 0.0
    """On the general units, one per element and operation."""
    matrix_flops: dict[str, float] = field(default_factory=dict)
    """By operand type of `tl.dot`."""
    storages: list[int] = field(default_factory=list)
    """Identity of each storage, by its index."""

    def plus(self, other: Counts) -> Counts:
        """Both together; programs and storages are those of the first."""
        return Counts(
            self.programs,
            _sum(self.traffic, other.traffic),
            _sum(self.stored, other.stored),
            self.flops + other.flops,
            _sum(self.matrix_flops, other.matrix_flops),
            self.storages,
        )

    def scaled(self, factor: float) -> Counts:
        return Counts(
            self.programs,
            {k: v * factor for k, v in self.traffic.items()},
            {k: v * factor for k, v in self.stored.items()},
            self.flops * factor,
            {k: v * factor for k, v in self.matrix_flops.items()},
        )
