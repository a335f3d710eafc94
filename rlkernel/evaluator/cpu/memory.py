"""A kernel's memory while it is interpreted: addresses are checked, and what is moved is counted.

Two uses: for real (small shapes, correctness), and dry (full shapes, no memory behind the addresses).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from triton.runtime.interpreter import InterpreterOptions

from rlkernel.evaluator.cpu import kinds
from rlkernel.evaluator.cpu.arithmetic import Arithmetic
from rlkernel.evaluator.cpu.efforts import Efforts
from rlkernel.evaluator.cpu.extents import Extents
from rlkernel.evaluator.cpu.known import KnownMemory
from rlkernel.evaluator.cpu.latency import Chain
from rlkernel.evaluator.cpu.limits import Limits
from rlkernel.evaluator.cpu.loaded import is_loaded
from rlkernel.evaluator.cpu.neighbours import FalseNeighbours, GoneBy, Hint
from rlkernel.evaluator.cpu.numbers import Array
from rlkernel.evaluator.cpu.pace import Pace
from rlkernel.evaluator.cpu.races import Races
from rlkernel.evaluator.cpu.reuse import SECTOR, Reuse
from rlkernel.evaluator.draws import draws, key_of
from rlkernel.evaluator.judging.costs.counts import ELSEWHERE

Part = tuple[int, Array, Any]
"""A storage in address order, the addresses of an access that lie in it, and which of the access's elements these are."""


class OutOfBounds(Exception):
    """A launch reads or writes outside the tensors that it was given."""


def _sectors(elements: Array, width: int) -> tuple[Array, float]:
    """The sectors in which elements of so many bytes lie, and the bytes from the first to the last one in each. The addresses
    are in order.

    >>> _sectors(np.array([0, 8, 24, 28, 32], dtype=np.uint64), 4)
    (array([0, 1], dtype=uint64), 36.0)
    """
    sectors = elements // np.uint64(SECTOR)
    begins = np.flatnonzero(np.concatenate([[True], sectors[1:] != sectors[:-1]]))
    ends = np.concatenate([begins[1:] - 1, [elements.size - 1]])
    return sectors[begins], float((elements[ends] - elements[begins]).sum()) + width * begins.size


class Memory(Arithmetic):
    """Triton's interpreter with memory that is checked and counted, and what its programs have done to it."""

    accesses = 0
    """Reads of memory, while launches are priced."""
    wrote = tried = False
    """Whether a program has written, and whether it has come to a store at all, while launches are priced."""
    left_out = False
    """Whether a mask of this launch has left elements out."""
    undecided = False
    """Whether memory decided a branch of this launch, so that what was followed may never run."""
    told = False
    """Whether memory tells how many turns a loop of this launch has, while launches are priced."""
    shortens = False
    """Whether long loops are shortened, while launches are priced."""
    last_turn = False
    """Whether the turn of such a loop runs that stands for others, with the last one's number."""
    pace: Pace | None = None
    """What counts the work, where too much of it is given up."""
    both_sides = 0
    """How many branches both sides of which are followed the running program is inside of, one in another."""

    def leave_open(self) -> None:
        """Note that memory decides a branch."""
        self.undecided = True

    def follow_both(self) -> None:
        """Note that memory decides a branch, both sides of which are followed from here on."""
        self.leave_open()
        self.both_sides += 1

    def followed_both(self) -> None:
        """Both sides of the innermost such branch have been followed."""
        self.both_sides -= 1

    def __init__(self) -> None:
        super().__init__()
        # no assertion watches integers for overflow: none is compiled in
        self.options = InterpreterOptions(sanitize_overflow=False)
        self.extents = Extents()
        self.limits = Limits()
        self.efforts = Efforts()
        self.hints_on_memory: set[tuple[str, int]] = set()
        """Functions and lines of the hints about values that memory decides, as far as launches were priced."""
        self.false_neighbours: dict[Hint, FalseNeighbours] = {}
        """The false hints of the running program, each kind of a line once, while launches are priced; with data those that loads
        went by then."""
        self._hints: dict[int, dict[Hint, FalseNeighbours]] = {}
        """Program -> its `false_neighbours`, where programs have data and may take turns."""
        self.gone_by = GoneBy()
        self.kinds = kinds.Kinds()
        self.known = KnownMemory({})
        self.reuse = Reuse()
        self.chain = Chain()
        self._missing: dict[int, int] = {}
        """Program -> the most elements that masks of its loads left out, where programs have data and may take turns."""
        self.touched: dict[int, tuple[int, int]] = {}
        """Storage -> the first byte of it that this launch touches, and the one after the last, while launches are priced; where
        memory decides addresses, they are not known."""
        self._moved: dict[int, float] = {}
        """Place of a storage -> the bytes that the last access to it has moved, while launches are priced."""
        self._starts = np.zeros(0, dtype=np.uint64)
        self._ends = np.zeros(0, dtype=np.uint64)
        self._order: list[int] = []
        self._races: Races | None = None
        self._compared: set[int] = set()
        """The words that the running program has compared by atomics, while launches are priced: locks, perhaps."""
        self.draw_from(key_of(None))

    def draw_from(self, key: str) -> None:
        """From now on, take from this key what the language leaves undefined, and which programs and turns are followed."""
        self._undefined_values = np.random.default_rng(draws(key, "undefined").getrandbits(128))
        self.order = draws(key, "order").getrandbits(64)
        self.programs, self.drawn_turns = draws(key, "programs"), draws(key, "turns of loops")
        self._key = key
        self.begin_round(0)

    def begin_round(self, number: int) -> None:
        """From now on programs take turns as in this round, so that a race that shows in few orders meets several."""
        self.turns = draws(self._key, f"turns {number}").getrandbits(64)

    def map(self, extents: Sequence[tuple[int, int]], *, dry: bool) -> None:
        """Addresses that a launch may touch: (start, end) per storage, in the order of its arguments."""
        self.dry, self.makes_pointers = dry, False
        self._hints.clear()
        self._missing.clear()
        self.touched.clear()
        self._order = sorted(range(len(extents)), key=lambda i: extents[i][0])
        self._starts = np.array([extents[i][0] for i in self._order], dtype=np.uint64)
        self._ends = np.array([extents[i][1] for i in self._order], dtype=np.uint64)
        self._races = None if dry else Races([extents[i] for i in self._order])

    def enter(self, program: int) -> None:
        """From now on, the program of this number in the order of the grid runs, for the first time or again."""
        self._compared.clear()
        self._program, self.last_turn, self.both_sides = program, False, 0
        self.false_neighbours = {} if self.dry else self._hints.setdefault(program, {})
        width, height, _ = self.grid_dim
        self.set_grid_idx(program % width, program // width % height, program // width // height)
        if self._races is not None:
            self._races.enter(program)

    def leave(self) -> None:
        """The program that runs has ended."""
        self._hints.pop(self._program, None)
        self._missing.pop(self._program, None)
        if self._races is not None:
            self._races.leave()
        if self.pace is not None and not self.dry:
            self.pace.ended()

    def leaves(self, start: int) -> bool:
        """Whether the last launch, which had data, left a part of the storage that begins at this address unwritten."""
        places = np.flatnonzero(self._starts == np.uint64(start)).tolist()
        return self._races is not None and any(map(self._races.unwritten, places))

    def _account(self, ptrs: Any, masks: Any, width: int, *, write: bool, atomic: bool = False) -> list[Part]:
        """Check the addresses under a mask, and count their bytes while launches are priced. An atomic reads what it writes.
        Raises OutOfBounds."""
        pointers, mask = ptrs.data, masks.data
        inside = kinds.others(masks) if self.dry and self.kinds.count > 1 else None
        unknown = self.dry and is_loaded([ptrs, masks])
        if unknown:
            self._count_most(pointers, mask, width, reads=atomic or not write)
        elif inside is not None:
            self.kinds.reach(inside, kinds.parts(masks) if write else (), write=write)
        self.tried |= write
        shape = np.broadcast_shapes(pointers.shape, mask.shape)
        pointers, mask = np.broadcast_to(pointers, shape), np.broadcast_to(mask, shape).astype(bool, copy=False)
        for (line, _), hint in self.false_neighbours.items() if self.dry else ():
            strays = self.gone_by.note(line, hint, pointers, mask | unknown, width)
            if strays.size and write:
                raise OutOfBounds(self.gone_by.full[line])
            self._by_storage(strays, width, "reads", made_up=unknown)
        addresses = pointers[mask]
        verb = "writes" if write else "reads"
        parts = self._by_storage(addresses, width, verb, made_up=unknown)
        if self.makes_pointers and addresses.size and not unknown and int(np.bitwise_or.reduce(addresses)) & (width - 1):
            raise OutOfBounds(f"program {self.grid_idx} {verb} elements at addresses that are no multiple of their size")
        self.wrote |= write and (unknown or addresses.size > 0)
        missing = math.prod(shape) - addresses.size
        if write:
            self.counts.lanes += math.prod(shape)
            self.counts.perhaps += math.prod(shape) if self.both_sides else 0
            self.counts.widest = max(self.counts.widest, math.prod(shape))
        else:
            self.counts.loaded += math.prod(shape)
            self.counts.inside += addresses.size
        self.left_out |= (unknown and not self.last_turn) or missing > 0
        if not self.dry:
            self._note_undone(missing, write=write)
        for place, mine, _ in parts if self.dry else ():
            storage = self._order[place]
            self._moved[place] = float(mine.size * width)
            if not unknown:
                self._touch(place, storage, int(mine.min()), int(mine.max()) + width)
                elements = np.unique(mine)
                sectors, spanned = _sectors(elements, width)
                self._moved[place] = moved = float(sectors.size * SECTOR)
                self.reuse.touch(storage, sectors, moved)
                reads = atomic or not write
                own = self.kinds.own(storage, elements, sectors, spanned) if reads else 0.0
                apart = own * self.kinds.share_apart(ptrs, masks) if own else 0.0
                self.counts.move(storage, moved, spanned=spanned, apart=apart)
            if write:
                self.known.forget(storage)
            if write and not unknown:
                self.counts.store(storage, mine.size * width, (math.prod(shape) - addresses.size) * width)
        if write and unknown and addresses.size and len(self._starts):
            storage = self._aimed_at(addresses, parts)
            self.counts.store(storage, addresses.size * width, (math.prod(shape) - addresses.size) * width)
        return parts

    def _touch(self, place: int, storage: int, low: int, high: int) -> None:
        """Note what is touched of a storage."""
        start = int(self._starts[place])
        before = self.touched.get(storage, (low - start, high - start))
        self.touched[storage] = min(before[0], low - start), max(before[1], high - start)

    def _note_undone(self, missing: int, *, write: bool) -> None:
        """An access leaves so many elements out. A store that leaves out fewer than the loads did writes what stands for these,
        and whoever reads that puts it together with others."""
        most = self._missing.get(self._program, 0)
        if not write:
            self._missing[self._program] = max(most, missing)
        elif missing < most:
            self.meet()

    def _aimed_at(self, addresses: Array, parts: list[Part]) -> int:
        """The storage that a store means whose addresses memory decides: where most of the made-up ones lie, or the nearest one.
        The real ones lie in it, all of them."""
        if parts:
            return self._order[max(parts, key=lambda part: int(part[1].size))[0]]
        bounds = np.concatenate([self._starts, self._ends]).astype(np.float64)
        return self._order[int(np.argmin(np.abs(bounds - float(addresses[0])))) % len(self._starts)]

    def _by_storage(self, addresses: Array, width: int, verb: str, *, made_up: bool = False) -> list[Part]:
        """Addresses that are `made_up`, because memory decides them, say nothing where they lie outside. Raises OutOfBounds."""
        if addresses.size == 0:
            return []
        last = self._ends - np.uint64(width)
        if len(last):  # nearly always, all of them lie in one
            first = int(np.searchsorted(self._starts, addresses.min(), side="right")) - 1
            if first >= 0 and addresses.max() <= last[first]:
                return [(first, addresses, slice(None))]
        place = np.searchsorted(self._starts, addresses, side="right") - 1
        inside = (place >= 0) & (len(last) > 0)
        if len(last):
            inside &= addresses <= last[np.maximum(place, 0)]
        if not inside.all() and not made_up:
            raise OutOfBounds(f"program {self.grid_idx} {verb} {int((~inside).sum())} elements outside the tensors it was given")
        return [(int(i), addresses[mine], mine) for i in np.unique(place[inside]) for mine in [(place == i) & inside]]

    def _count_most(self, pointers: Array, mask: Array, width: int, *, reads: bool) -> None:
        """Count the bytes of an access whose addresses or mask come from memory as if none were left out or met twice, those
        that lie outside all tensors too: they are made up, and the real ones move as much."""
        shape = np.broadcast_shapes(pointers.shape, mask.shape)
        addresses = np.broadcast_to(pointers, shape).reshape(-1)
        place = np.searchsorted(self._starts, addresses, side="right") - 1
        if len(self._ends):
            place[addresses >= self._ends[np.maximum(place, 0)]] = ELSEWHERE
        for index in np.unique(place):
            mine = addresses[place == index]
            storage = ELSEWHERE if index == ELSEWHERE else self._order[int(index)]
            moved = max(SECTOR * np.unique(mine // np.uint64(SECTOR)).size, mine.size * width)
            self.reuse.touch(storage, None, float(moved))
            self.counts.move(storage, float(moved), apart=moved * float(reads))

    def _loaded(self, parts: list[Part], depth: float) -> float:
        """The depth of what a load gives whose addresses have this depth."""
        found = [depth]
        for place, mine, _ in parts:
            size = int(self._ends[place] - self._starts[place])
            found.append(self.chain.load(self._order[place], size, mine, self._moved.get(place, 0.0), depth))
        return max(found)

    def _undefined(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        count = int(np.prod(shape, dtype=np.int64))
        if dtype == np.bool_:
            return self._undefined_values.integers(0, 2, size=shape).astype(bool)
        return np.frombuffer(self._undefined_values.bytes(count * dtype.itemsize), dtype=dtype).reshape(shape)

    def _stored(self, parts: list[Part], depth: float) -> None:
        """Something of this depth is stored, in part outside all tensors where memory decides the addresses."""
        for place, addresses, _ in parts:
            self.chain.store(self._order[place], addresses, depth)
        if not parts:
            self.chain.store(ELSEWHERE, np.zeros(0, dtype=np.uint64), depth)
