"""How long the loads of a program take, and which of them wait for one another: while a launch is priced.

A load is issued where the program comes to it, and the program goes on until it needs what was loaded. Binaries for compute
capability 9.0 were read to see what the compiler moves: the loads of one turn of a loop are issued together, and those of the
next turn when all that the turn computes was issued. There are two exceptions:

    a loop with a product (or with stages of its own)     loads are issued stages - 1 turns ahead
    a loop whose bounds are constants, without reductions  it is unrolled: the loads of some turns are issued together

Example: a program that sums 64 blocks of a row waits 64 times for memory. At 1,000 cycles that is 32 us, however fast memory is.
If 16 programs of a processor do so at once, they wait at the same time, and 16 times as many bytes come in those 32 us.

Latencies in cycles: Luo et al. (arXiv:2402.13499, 2501.12084) of Hopper's caches; memory's is what loops of one block in each
turn take on an H200 besides what they compute (0.5 us, the shipped corpus).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

L1, L2, MEMORY = 33.0, 200.0, 1000.0
"""A load from the cache of a processor, from that of the device, and from memory."""
L1_BYTES = 256 << 10
"""Bytes of the first."""
LINE = 128
"""Bytes of a line of it."""
TOGETHER = 4
"""Turns of an unrolled loop whose loads are issued together: as many as the compiler unrolls at least."""
FITS = 0.95
"""Share of the shared memory of all turns that are ahead, from which on they are."""
ONE_BY_ONE = 40.0
"""Operations, in units of half a multiply-add, for an element of a product that is loaded on its own: its address, its mask, the
load and the store into shared memory, 20 instructions in the shipped corpus' products whose masks or strides are odd."""
HELD = 0.5
"""Share of a program's registers in which loads lie that were issued and are not there yet; the rest holds what it works with."""
STAGES = 3
"""Stages of a launch that says nothing of them: Triton's own number."""


@dataclass
class Turns:
    """One run of a loop."""

    number: float
    """How many turns it has, as far as is known."""
    together: int = 1
    """How many turns have their loads issued together, if they reduce nothing."""
    stages: int = 1
    """How many turns the loads are ahead that a product needs, and this one."""
    begun: int = 0
    began: float = 0.0
    """When the first turn has begun."""
    busy: float = 0.0
    """How long the first turn took besides its loads."""
    longest: float = 0.0
    """The latency of the slowest load of the first turn."""
    buffers: int = 0
    """How many turns' loads lie in shared memory where a product's loads are issued ahead; 0 without a product."""
    asked: float = 0.0
    """The bytes that the first turn loads."""
    narrow: float = 0.0
    """The share of a product's loads that are too narrow to be issued ahead."""
    reduces: bool = False
    """Whether it has a reduction, whose barriers keep loads where they are."""

    def of_load(self, latency: float) -> float:
        """How long a turn waits for a load of this latency.

        Issued s - 1 turns ahead, each of `busy` cycles and this wait W: W = latency - (s - 1) (busy + W), or nothing.
        """
        if self.begun > 1 and self.stages > 1:
            return max(0.0, (latency - (self.stages - 1) * self.busy) / self.stages)
        if self.together > 1 and not self.reduces:
            return latency / min(self.together, max(1.0, self.number))
        return latency


class Fetching:
    """The memory as one program at a time meets it."""

    def __init__(
        self, programs: float = 1.0, per_cycle: float = math.inf, stages: int = 1, shared_bytes: float = math.inf,
        register_bytes: float = math.inf,
    ) -> None:  # fmt: skip
        """`programs`: of the launch; `per_cycle`: bytes that a program takes at most; `stages`: of loops with products;
        `shared_bytes`: what the binary has of shared memory, where loads lie that are issued ahead; `register_bytes`: what it has
        of registers, where all others lie."""
        self._programs, self._per_cycle, self._stages, self._shared = programs, per_cycle, stages, shared_bytes
        self._held = HELD * register_bytes
        self.begin()

    def begin(self) -> None:
        """Another program begins."""
        self.loops: list[Turns] = []
        self._met: set[tuple[int, int]] = set()
        self._free = 0.0
        """When the way from memory is free."""

    def product(self, wide: bool) -> None:
        """The program multiplies; `wide`: by the units that read all operands from shared memory, which keep one more turn."""
        for loop in self.loops:
            loop.buffers = max(loop.buffers, self._stages if wide else self._stages - 1)

    def first_ends(self, loop: Turns, took: float) -> None:
        """The first turn of a loop has ended, which took so long: what it holds says what the compiler does with the others.

        Loads of fewer than 4 bytes for each thread are not issued ahead, and the binary has no shared memory for more turns.
        """
        loop.busy = max(0.0, took - loop.longest)
        if loop.buffers > 1:
            missing = FITS * loop.buffers * loop.asked - self._shared
            loop.narrow = min(1.0, max(0.0, missing / ((loop.buffers - 1) * max(1.0, loop.asked))))
        if loop.buffers and not loop.narrow:
            loop.stages = max(loop.stages, self._stages)

    def slots(self, elements: int) -> float:
        """How many operations it takes to load so many elements one by one."""
        return ONE_BY_ONE * elements * self.loops[-1].narrow if self.loops else 0.0

    def load(self, storage: int, size: int, addresses: Array, moved: float, issued: float) -> float:
        """When what is loaded is there, of a storage of so many bytes, of which so many are moved."""
        if not addresses.size:
            return issued
        latency = self._latency(storage, size, int(addresses[0]) // LINE, moved)
        if not (self.loops and self.loops[-1].buffers):
            latency *= max(1.0, moved / self._held)  # one part after the other
        if self.loops and self.loops[-1].begun == 1:
            self.loops[-1].asked += moved
            self.loops[-1].longest = max(self.loops[-1].longest, latency)
        self._free = max(self._free, issued) + moved / self._per_cycle
        return max(self._free, issued) + (self.loops[-1].of_load(latency) if self.loops else latency)

    def _latency(self, storage: int, size: int, line: int, moved: float) -> float:
        """What was met before lies in a cache. Programs that share what is new find it in the device's cache, all but one."""
        if (storage, line) in self._met:
            return L1 if size <= L1_BYTES else L2
        self._met.add((storage, line))
        turns = math.prod(loop.number for loop in self.loops)
        sharing = moved * turns * self._programs / max(1, size)
        return L2 + (MEMORY - L2) / max(1.0, sharing)
