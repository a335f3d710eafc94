"""How long what repeats in a kernel is: the turns of each loop, and the programs of its grid along each axis.

A loop that has one turn where results are compared, and several at full shape, was not seen to go on from one turn to the next.
One that has two was seen to go on once: it may keep its first turn and its last. Where a kernel adds up in half precision, what
it loses grows with each turn, and where it adds whole numbers of 8 or 16 bits, some turn is one too many, so that no fewer show
how its loops go on. Of a loop that goes as far as a number in memory says, most of the turns are asked for: a kernel may hold
that number against another one.

So it is with a side of a branch that no launch takes where results are compared, and a launch takes whole at full shape:
`if cols % BLOCK == 0` is true for a whole launch or for none of it, and was not seen to be right. And so it is with a conversion
that does not hold a whole number at full shape, and holds all of them where results are compared (`exactness`), and with a
comparison that comes to something there that it does not here (`outcomes`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rlkernel.evaluator.cpu import outcomes
from rlkernel.evaluator.messages.children import Extent
from rlkernel.evaluator.program.schema import Launch, Program

ENOUGH = 3
"""Turns that show how a loop goes on: a first, a last, and one between. Programs, where they do different things."""
ENOUGH_ALIKE = 2
"""Programs that show how a grid goes on whose programs all do the same."""
MOST = 0.75
"""The share of its turns that shows how a loop goes on whose turns memory tells."""
AXES = 3
"""The axes of a grid, whose places come before those of loops."""
SIDES = 1 << 15
"""Where the places of the sides of branches begin, two for each branch."""
LOST = 1 << 16
"""Where the lines of conversions begin that do not hold a whole number."""
OUTCOMES = 1 << 17
"""Where what comparisons come to begins, two for each comparison."""
TAKEN = 2
"""What is noted of a side that is taken: `Extent` counts what there is several of."""
Place = tuple[str, int]
"""The text of a kernel or of a function that it calls, and what of it, see `Extent.place`."""


def is_side(place: int) -> bool:
    """Whether a place is a side of a branch."""
    return SIDES <= place < LOST


def is_lost(place: int) -> bool:
    """Whether a place is a conversion that does not hold a whole number."""
    return LOST <= place < OUTCOMES


class Extents:
    """The most that each place of the kernels was seen to have."""

    def __init__(self) -> None:
        self._most: dict[Place, int] = {}
        self._left_out: set[str] = set()
        """The texts of the kernels whose masks leave elements out."""
        self._meeting: set[str] = set()
        """The texts of the kernels of whose blocks an element may change what becomes of another."""
        self._uneven: set[str] = set()
        """The texts of the kernels whose programs differ in what they do, and not in what they address alone."""
        self._adding_in_little: set[str] = set()
        """The texts of the kernels whose accumulators have half precision, or that add whole numbers of 8 or 16 bits."""
        self._least_lost: dict[Place, int] = {}
        """The least whole number that a conversion does not hold."""
        self._told: set[Place] = set()
        """The loops that go as far as a number in memory says."""

    def note(self, place: Place, count: int) -> None:
        """A loop has so many turns, or a grid so many programs along an axis."""
        if count > self._most.get(place, 0):
            self._most[place] = count

    def note_side(self, branch: Place, taken: bool) -> None:
        """One side of a branch is taken, for all programs of a launch."""
        source, number = branch
        if number < SIDES // 2:
            self.note((source, SIDES + 2 * number + taken), TAKEN)

    def note_left_out(self, source: str) -> None:
        """Masks of a kernel leave elements out."""
        self._left_out.add(source)

    def note_meeting(self, source: str) -> None:
        """Elements of a kernel's blocks meet: in sums, products, wherever one gets to another's place, and in memory where what
        stands for elements that were left out is stored."""
        self._meeting.add(source)

    def note_uneven(self, source: str) -> None:
        """Programs of a launch do different things."""
        self._uneven.add(source)

    def note_adding_in_little(self, source: str) -> None:
        """Accumulators of a kernel have half precision, or 8 or 16 bits."""
        self._adding_in_little.add(source)

    def note_lost(self, source: str, line: int, largest: int, least: int) -> None:
        """A conversion in this line of a kernel, or of what it calls, did not hold this whole number, the largest of all;
        the least that it does not hold."""
        place = source, LOST + line % LOST
        self._least_lost[place] = min(least, self._least_lost.get(place, least))
        self.note(place, largest)

    def note_outcome(self, source: str, at: int, answer: bool, share: int) -> None:
        """A comparison at this place of a kernel's code, or of what it calls, came to this for such a share of the elements."""
        self.note((source, OUTCOMES + 2 * (at % OUTCOMES) + answer), max(TAKEN, share))

    def note_told(self, place: Place) -> None:
        """Memory tells how many turns a loop has."""
        self._told.add(place)

    @property
    def told(self) -> bool:
        """Whether memory tells of any loop how many turns it has."""
        return bool(self._told)

    def left_out(self, program: Program) -> tuple[int, ...]:
        """The kernels whose masks leave elements out here, where `program` ran."""
        return tuple(index for index, function in enumerate(program.functions) if function.source in self._left_out)

    def unfilled(self, left_out: Iterable[int], repeated: Iterable[Extent], program: Program) -> bool:
        """Whether masks of a kernel leave elements out here that leave none out at full shape, where `program` ran, and the
        kernels of `left_out` are those whose masks leave some out; or a loop has no turn here of those that are `repeated` there,
        since its blocks are larger than what there is. Where each element goes its own way in all kernels, those that are left
        out change no other one; where elements meet in one of them, another may have made what it reads."""
        sources = {function.source for function in program.functions}
        there = {program.functions[index].source for index in left_out}
        if sources & self._meeting and (sources & self._left_out) - there:
            return True
        launched = {source for source, place in self._most if place < AXES}
        loops = (one for one in repeated if AXES <= one.place < SIDES and program.functions[one.function].source in launched)
        return any(not self._seen(one, program) for one in loops)

    def repeated(self, program: Program) -> tuple[Extent, ...]:
        """What has several turns here, where `program` ran."""
        numbers = {function.source: index for index, function in reversed([*enumerate(program.functions)])}
        places = [(*place, count, self._enough(place, count)) for place, count in self._most.items() if count > 1]
        found = [Extent(numbers[source], number, count, enough) for source, number, count, enough in places if source in numbers]
        return tuple(sorted(found))

    def short(self, repeated: Iterable[Extent], program: Program) -> tuple[Extent, ...]:
        """What has fewer turns here than at full shape, of what is `repeated` there, where `program` ran, and too few to show how
        it goes on."""
        return tuple(one for one in repeated if self._seen(one, program) < one.enough)

    def _seen(self, one: Extent, program: Program) -> int:
        """How many turns, or programs, there are here of what repeats elsewhere."""
        return self._most.get((program.functions[one.function].source, one.place), 0)

    def _enough(self, place: Place, count: int) -> int:
        """How many turns, or programs, of so many show how what repeats goes on."""
        source, number = place
        if place in self._least_lost:
            return self._least_lost[place]
        if number >= OUTCOMES:
            return max(TAKEN, min(outcomes.ENOUGH, count // outcomes.MOST_BELOW))
        if number >= SIDES:
            return TAKEN
        if number >= AXES and source in self._adding_in_little:
            return count
        if place in self._told:  # where programs have other numbers, hardly anybody has the most
            return max(min(ENOUGH, count), math.ceil(MOST * count))
        return min(ENOUGH_ALIKE if number < AXES and source not in self._uneven else ENOUGH, count)


def growth(small: Program, full: Program, short: Iterable[Extent]) -> float:
    """How many times as much there is to do at full shape: in programs, each by the turns of a loop of its kernel that is short
    at the smaller sizes; of a loop in a function that kernels call, in all of them."""
    turns: dict[int, int] = {}
    for extent in short:
        if AXES <= extent.place < SIDES:
            turns[extent.function] = max(turns.get(extent.function, 1), extent.count)
    launched = {step.function for step in full.launches}
    called = max((count for function, count in turns.items() if function not in launched), default=1)
    work = sum(_programs(step) * turns.get(step.function, 1) * called for step in full.launches)
    return work / max(1, sum(map(_programs, small.launches)))


def _programs(launch: Launch) -> int:
    return math.prod(launch.configs[0].grid)
