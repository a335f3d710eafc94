"""Which programs of a grid are followed where a launch is priced: few of those that do the same, and some of every kind.

A followed program says which others decide as it does (`kinds`). The rest is followed on its own, until every kind of program is
known with its number: a launch then costs what each kind costs, times its number. Within a kind, two programs tell the price if
they are alike. Where it is known how many turns their loops take, as of a loop that grows along the grid, those with the fewest
and the most are followed, and tell it of all between them (`standing`). More are followed where programs differ otherwise.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import mul
from typing import Any, Protocol

import numpy as np

from rlkernel.evaluator.cpu.kinds import Kinds
from rlkernel.evaluator.cpu.latency import Chain
from rlkernel.evaluator.cpu.reuse import Reuse
from rlkernel.evaluator.cpu.standing import standing
from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.judging.costs.operator_costs import NoCost

Array = np.ndarray[Any, Any]
Grid = tuple[int, int, int]

ALIKE = 2
"""Programs that are followed of a kind whose programs are alike."""
SPREAD = 16
"""Programs that are followed in place of the first ones, where too few of these write."""
MOST_SAMPLED = 64
"""Programs that are followed of a kind at most, where some of them do nothing."""
DIFFERENT = 4
"""Programs that are followed besides, of a kind whose programs differ; `SPREAD` where memory tells how long they are, and
`MOST_SAMPLED` where they store a part of a block then."""
ERRORS = 4.0
"""Standard errors by which programs whose lengths memory tells may write more than those of them that were followed."""
UNEVEN = 0.25
"""Share of the larger of two programs' work from which on they differ."""
MOST_READS = 1500
"""Reads of memory after which no more programs are followed because they differ. One takes about a tenth of a millisecond."""
MOST_KINDS = 128
"""Kinds of programs that are told apart. A launch with more has no price: work could hide in what nobody follows."""
EXACT_KINDS = 8
"""Kinds from which on programs that store less are no kind of their own: of a triangle, every program stores another part."""
FEWEST_KINDS = 16
"""Kinds that are told apart, however long their programs are."""
MOST_PROGRAMS = 2**20
"""Programs whose decisions are looked at. Of a larger grid one is drawn of each run of as many, so that those of each kind are as
often among them as they are in the grid: 256 of 8,192 rows of programs may write, and each count is known within a run."""


class TooManyKinds(NoCost):
    """The programs of a launch do so many different things that its work is not known."""

    def __init__(self, where: str = "") -> None:
        Exception.__init__(
            self,
            f"{where}its programs do too many different things, which have no modelled cost: "
            "without a GPU, let programs differ by what they address alone",
        )


class Machine(Protocol):
    """Where programs run: what is counted, and what is known of the others."""

    counts: Counts
    kinds: Kinds
    reuse: Reuse
    chain: Chain
    wrote: bool
    tried: bool
    undecided: bool
    told: bool
    accesses: int
    programs: random.Random


@dataclass
class Kind:
    """Programs that decide alike, and what those of them cost that were followed."""

    members: Array
    first: int = -1
    """The number of the program that was followed first."""
    numbers: list[int] = field(default_factory=list)
    """The numbers of the programs that were followed."""
    followed: list[Counts] = field(default_factory=list)
    """What each of these costs."""
    turns: Array = field(default_factory=lambda: np.zeros(1))
    """How many turns of loops each program takes, as far as that is known."""
    apart: dict[int, float] = field(default_factory=dict)
    """Storage index -> the share of what is touched that programs do not share, by the program that was followed first."""
    own: dict[int, float] = field(default_factory=dict)
    """Storage index -> the bytes of this of the program that was followed first."""
    writing: int = 0
    """How many of the followed ones have written something."""
    tried: bool = False
    """Whether one of them has come to a store, perhaps with an empty mask."""

    def learn(self) -> None:
        """One program was followed, beside which the addresses of the others were looked at."""
        counts = self.followed[-1]
        self.own = {storage: counts.apart.get(storage, spanned) for storage, spanned in counts.spanned.items() if spanned}
        self.apart = {storage: own / counts.spanned[storage] for storage, own in self.own.items()}

    @property
    def uneven(self) -> bool:
        """Whether its programs are known to take different numbers of turns."""
        return bool(self.turns.min() < self.turns.max())

    def standing(self) -> list[float]:
        """For how many programs each of the followed ones stands."""
        if not self.uneven:
            return [self.members.size / len(self.followed)] * len(self.followed)
        return standing(self.turns, self._turns_followed())

    def bends(self) -> bool:
        """Whether a program does other work than its turns tell, by those with the fewest and the most."""
        turns, works = self._turns_followed(), [counts.work for counts in self.followed]
        low, high = turns.index(min(turns)), turns.index(max(turns))
        whole = max(1.0, turns[high] - turns[low])
        expected = [_between(works[low], works[high], (one - turns[low]) / whole) for one in turns]
        return any(differ([work, other]) for work, other in zip(works, expected, strict=True))

    def _turns_followed(self) -> list[float]:
        return [float(one) for one in self.turns[np.searchsorted(self.members, self.numbers)]]

    def stored_by_chance(self) -> dict[int, float]:
        """Storage index -> the standard error of the bytes that all its programs write, by how those that were followed and take
        as many turns differ."""
        turns, standing = self._turns_followed(), self.standing()
        found: dict[int, float] = {}
        for storage in {storage for one in self.followed for storage in one.stored}:
            errors = [0.0]
            for turn in set(turns):
                alike = [place for place, other in enumerate(turns) if other == turn]
                written = [self.followed[place].stored.get(storage, 0.0) for place in alike]
                errors.append(sum(standing[place] for place in alike) * float(np.std(written)) / math.sqrt(len(alike)))
            found[storage] = math.hypot(*errors)
        return found

    def unshared(self, counts: Counts) -> dict[int, float]:
        """Storage index -> the bytes that one of the programs touches, less what others touch, too: at most. Of programs that
        take different numbers of turns, one with fewer touches as much that is its own, where each turn loads the same again."""
        own = self.own if self.uneven else {}
        return {
            storage: max(self.apart.get(storage, 1.0) * spanned, min(spanned, own.get(storage, 0.0)))
            for storage, spanned in counts.spanned.items()
        }


class Sampling:
    """The programs of one launch that are followed, and what all of them cost."""

    def __init__(self, machine: Machine, grid: Grid) -> None:
        self._machine = machine
        self._grid = grid
        self._total = grid[0] * grid[1] * grid[2]
        self._before = machine.accesses
        machine.kinds.begin()
        self._kinds: list[Kind] = []

    @property
    def idle(self) -> bool:
        """Whether none of so many programs has written anything."""
        return not any(kind.writing for kind in self._kinds) and any(len(k.followed) == MOST_SAMPLED for k in self._kinds)

    @property
    def uneven(self) -> bool:
        """Whether programs decide differently, see `kinds`."""
        return len(self._kinds) > 1

    def counts(self) -> Counts:
        """What the launch costs, from the programs that were followed."""
        whole = Counts(programs=self._total)
        share = self._total / max(1, sum(kind.members.size for kind in self._kinds))
        for kind in self._kinds:
            for one, programs in zip(kind.followed, kind.standing(), strict=True):
                whole.add(replace(one, apart=kind.unshared(one)), share * programs)
        whole.atomics = self._atomics(share)
        if self._machine.told:
            chances = [kind.stored_by_chance() for kind in self._kinds]
            for storage in whole.stored:
                whole.by_chance[storage] = ERRORS * share * math.hypot(*(one.get(storage, 0.0) for one in chances))
        if len(self._kinds) > EXACT_KINDS:  # one that stores less, or nothing, may stand for one that stores more
            whole.left_out = dict.fromkeys(whole.stored, math.inf)
        return whole

    def _atomics(self, share: float) -> dict[int, float]:
        """The atomics of all programs by their words: those on a word that several of the followed programs change are made by
        all of a kind, others by one."""
        found: dict[int, float] = {}
        for kind in self._kinds:
            words = Counter(word for one in kind.followed for word in one.atomics)
            for word, programs in words.items():
                times = [one.atomics.get(word, 0.0) for one in kind.followed]
                everybody = programs > 1 or kind.members.size == 1
                whole = share * sum(map(mul, times, kind.standing())) if everybody else sum(times) / len(times)
                found[word] = found.get(word, 0.0) + whole
        return found

    def programs(self) -> Iterator[int]:
        """Their numbers. What one of them does is counted until the next is asked for."""
        open_ = [self._everybody()] if self._total else []
        self._machine.undecided = self._machine.told = False
        while open_:
            if len(self._kinds) >= (FEWEST_KINDS if self._long() else MOST_KINDS):
                raise TooManyKinds
            members = open_.pop(min(range(len(open_)), key=lambda place: open_[place].size))
            place = self._machine.programs.randrange(members.size)
            kind = Kind(members, int(members[place]))
            yield from self._follow(kind, place, members)
            kind.learn()
            kind.members, kind.turns = self._machine.kinds.alike, self._machine.kinds.taken
            open_ += self._machine.kinds.left
            self._kinds.append(kind)
        for kind in self._kinds:
            yield from self._more(kind)
        yield from self._last()

    def _last(self) -> Iterator[int]:
        """The program at the end of the grid, which is followed for its addresses and not counted: what has no mask goes beyond
        its tensors there, and its decisions tell it from no other program. Not where memory decides a branch: what stands behind
        `if pid >= tl.load(tiles): return` is followed, and the last program may not come there."""
        last = self._total - 1
        if last < 0 or self._machine.undecided or any(kind.first == last for kind in self._kinds):
            return
        apart = Kind(np.array([last]))
        yield from self._follow(apart, 0)

    def _everybody(self) -> Array:
        if self._total <= MOST_PROGRAMS:
            return np.arange(self._total)
        runs = np.floor(np.linspace(0.0, self._total, MOST_PROGRAMS + 1)).astype(np.int64)
        return np.random.default_rng(self._machine.programs.getrandbits(64)).integers(runs[:-1], runs[1:])

    def _follow(self, kind: Kind, place: int, beside: Array | None = None) -> Iterator[int]:
        """One program of a kind by its place among them; `beside`: the programs whose decisions are looked at, too."""
        machine = self._machine
        machine.counts, machine.wrote, machine.tried = Counts(), False, False
        machine.reuse.begin()
        machine.chain.begin()
        number = int(kind.members[place])
        members, index = (np.array([number]), 0) if beside is None else (beside, place)
        machine.kinds.follow(self._grid, members, index, exactly=len(self._kinds) < EXACT_KINDS)
        yield number
        machine.reuse.count(machine.counts)
        machine.counts.deepest = machine.counts.waited = machine.chain.depth
        kind.numbers.append(number)
        kind.followed.append(machine.counts)
        kind.writing += machine.wrote
        kind.tried |= machine.tried

    def _more(self, kind: Kind) -> Iterator[int]:
        """Others of a kind: the one opposite the first, as in `spread`, and those with the fewest and the most turns; where too
        few of them write, `SPREAD` in their place, and then `MOST_SAMPLED`; some more where they do different work.

        What counts is a whole set: one that ended with the program that was looked for would hold too many of its kind."""
        size = kind.members.size
        if size >= ALIKE and (not self._long() or (len(self._kinds) == 1 and not kind.uneven)):
            place = int(np.searchsorted(kind.members, kind.first))
            for other in (size - 1 - place,) if 2 * place != size - 1 else (0, size - 1):
                yield from self._follow(kind, other)
        if kind.uneven:
            yield from self._ends(kind)
        for count in (SPREAD, MOST_SAMPLED):
            if kind.tried and kind.writing < ALIKE and len(kind.followed) < size:
                kind.numbers, kind.followed, kind.writing = [], [], 0
                yield from self._some(kind, min(count, size))
        differs = kind.bends() if kind.uneven else differ([counts.work for counts in kind.followed])
        masked = self._machine.told and any(one.left_out.get(place, 0.0) > 0 for one in kind.followed for place in one.stored)
        enough = MOST_SAMPLED if masked else SPREAD
        if len(kind.followed) < min(enough, size) and (differs or masked):
            for place in self._places(kind, enough if self._machine.told else DIFFERENT):
                if self._long():
                    break
                yield from self._follow(kind, place)

    def _ends(self, kind: Kind) -> Iterator[int]:
        """A program with the fewest turns and one with the most."""
        for most in (kind.turns.max(), kind.turns.min()):
            places = np.flatnonzero(kind.turns == most)
            if most not in kind.turns[np.searchsorted(kind.members, kind.numbers)]:
                yield from self._follow(kind, int(places[self._machine.programs.randrange(places.size)]))

    def _some(self, kind: Kind, count: int) -> Iterator[int]:
        for place in self._places(kind, count):
            yield from self._follow(kind, place)

    def _places(self, kind: Kind, count: int) -> Iterator[int]:
        whole = kind.members.size == self._total
        return spread(self._grid if whole else (kind.members.size, 1, 1), count, self._machine.programs)

    def _long(self) -> bool:
        """Whether the programs that were followed take so long that no more are."""
        return self._machine.accesses - self._before > MOST_READS


def differ(works: list[tuple[float, float, float]]) -> bool:
    """Whether programs do different work."""
    return any(max(kind) - min(kind) > UNEVEN * max(kind) for kind in zip(*works, strict=True))


def _between(first: tuple[float, ...], last: tuple[float, ...], part: float) -> tuple[float, float, float]:
    """The work so far on the way from one program's to another's."""
    bytes_, operations, products = (one + part * (other - one) for one, other in zip(first, last, strict=True))
    return bytes_, operations, products


def spread(grid: Grid, count: int, chance: random.Random) -> Iterator[int]:
    """So many numbers of programs, spread evenly over each dimension of the grid. Every two of them lie opposite each other, so
    that two alone tell the mean of work which grows along the grid."""
    axes = []
    for size in grid:
        half = [min(size - 1, int((slot + chance.random()) * size / count)) for slot in range(count // 2)]
        places = half + [size // 2] * (count % 2) + [size - 1 - place for place in reversed(half)]
        axes.append([places[slot] for slot in _opposite(count, chance)])
    for x, y, z in zip(*axes, strict=True):
        yield x + grid[0] * (y + grid[1] * z)


def _opposite(count: int, chance: random.Random) -> list[int]:
    """The numbers below `count` in random order, each beside its mirror image."""
    pairs = [chance.random() for _ in range(count)]
    return sorted(range(count), key=lambda number: (pairs[min(number, count - 1 - number)], chance.random()))
