"""Loops of a kernel while a launch is priced: the first turn is followed, and one more stands for all the others.

Only launches whose turns are too many to be followed are shortened (`Interpreter.launch`). In the turn that stands for others
nobody knows what differs between turns: the loop's variable, and all that the body assigns, count as values from memory
(`loaded`). So both sides of branches on them are followed, masked accesses count whole, and the work is at least that of any
turn. They stay unknown after the loop. A loop inside whose bounds depend on them is refused, and the launch is then followed as
it is.

Example: a product over 524,288 in steps of 32 is two turns in place of 16,384. Shortened are `for` loops over a `range`, also
such that the compiler unrolls, and `while` loops that count: `while k < K:` with `k += BLOCK` in it, where neither `K` nor
`BLOCK` changes, as `tl.num_programs(0)` does not. The turn that stands for others of a `for` loop has the last one's number, so
that its masks tell whether the last block is a whole one; where it is not, turns between say what the others store (`between`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import triton.language as tl

from rlkernel.evaluator.cpu.between import Between
from rlkernel.evaluator.cpu.extents import Extents, Place
from rlkernel.evaluator.cpu.fetching import Turns
from rlkernel.evaluator.cpu.kinds import Kinds, others
from rlkernel.evaluator.cpu.latency import Chain, handles
from rlkernel.evaluator.cpu.loaded import is_known, is_loaded, marked_copy
from rlkernel.evaluator.cpu.reuse import Reuse
from rlkernel.evaluator.judging.costs.counts import Counts

FOLLOWED = 1
"""Turns that are followed as they are."""
LONG = 2
"""Turns up to which a loop is not shortened: loops inside of loops are many turns, however short each is."""


class Pricing(Protocol):
    """What follows programs and counts."""

    dry: bool
    told: bool
    """Whether memory tells how many turns a loop has."""
    shortens: bool
    """Whether long loops are shortened."""
    counts: Counts
    extents: Extents
    kinds: Kinds
    reuse: Reuse
    chain: Chain
    last_turn: bool
    """Whether the turn that runs stands for others, and its loop's variable is that of the last one, whose masks count."""
    drawn_turns: random.Random
    """By what turns between the first and the last are drawn."""


class Numbers:
    """What `range` means in a kernel: the numbers as the kernel's values, made one by one."""

    def __init__(
        self, numbers: range, made: Callable[[int], Any], together: int = 1, stages: int = 1, *, told: bool = False
    ) -> None:
        """`together` and `stages`: see `fetching.Turns`. told: whether memory tells how many there are."""
        self.told = told
        self.numbers = numbers
        self.together, self.stages = together, stages
        self._made = made

    def __iter__(self) -> Iterator[Any]:
        return map(self._made, self.numbers)  # no generator: those are programs that stop

    def at(self, turn: int) -> Any:
        """The number of a turn; that of the last one at -1."""
        return self._made(self.numbers[turn])


class Unrolled(Numbers):
    """What `tl.static_range` means in a kernel: numbers of Python, since they may say what is compiled. In the turn that stands
    for others it is a value of the kernel; where it cannot be one, as an extent, the launch is followed as it is."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numbers)


class _Loop:
    """One run of a loop."""

    unknown = False
    """Whether the turn that runs stands for others, or has."""

    def __init__(self, machine: Pricing, place: Place) -> None:
        self._machine = machine
        self._place = place
        self._turns = 0
        """How many turns a loop has that is shortened."""
        self._begun = 0
        self._waits = Turns(1)
        """Which loads wait for one another."""
        self._stored: dict[int, float] = {}
        """Storage index -> the bytes that the first turn stores; those before it, while it runs."""
        self._between: Between | None = None
        """Turns that are drawn, once the turn that stands for others has ended."""
        self._depths: dict[str, list[float]] = {}
        """How deep the variables of the body are when the turn begins that stands for others."""
        self._hidden: dict[str, Any] = {}
        """The variables of the body as they are after the loop, while turns are drawn."""

    def hidden(self, name: str, value: Any) -> Any:
        """What a variable of the body holds from now on, which nobody knows: before the turn that stands for others, and after
        the loop, when it is deeper by as much as in that turn for each of the others."""
        if name in self._hidden:  # a drawn turn has assigned it since
            return self._hidden[name]
        made = marked_copy(value)
        parts = list(handles(made))
        depths = [part.__dict__.get("depth", 0.0) for part in parts]
        before = self._depths.setdefault(name, depths)
        for part, depth, first in zip(parts, depths, before, strict=False):
            part.__dict__["depth"] = depth + max(0.0, depth - first) * (self._turns - FOLLOWED - 1)
        if self._between is not None:
            self._hidden[name] = made
        return made

    def _shorten(self, turns: int) -> bool:
        """Whether a loop of so many turns is shortened."""
        if self._machine.dry and self._machine.shortens and turns > LONG:
            self._turns = turns
        return self._turns > 0

    def _goes_on(self) -> bool:
        """Whether a shortened loop has another turn, which begins."""
        self._begun += 1
        if self._begun <= FOLLOWED:
            self._stored = dict(self._machine.counts.stored)
            self._machine.chain.next_turn(self._waits)
            return True
        if not self.unknown:
            self.unknown = True
            self._machine.chain.next_turn(self._waits)
            self._before, self._machine.counts = self._machine.counts, Counts()
            self._stored = {place: size - self._stored.get(place, 0.0) for place, size in self._before.stored.items()}
            self._machine.reuse.begin_turn()
            self._machine.chain.begin_turn()
            return True
        if self._between is None:
            last = self._machine.counts
            self._before.add(last, self._turns - FOLLOWED)
            self._machine.reuse.end_turn(self._turns - FOLLOWED)
            self._machine.chain.end_turn(self._turns - FOLLOWED)
            self._between = Between(self._machine, self._stored, last)
        if self._between.goes_on():
            return True
        self._between.end(self._before, self._turns - FOLLOWED - 1)
        self._machine.chain.end_loop(self._waits)
        self._machine.counts = self._before
        return False


class For(_Loop):
    """One run of `for` over `turns`."""

    def __init__(self, machine: Pricing, place: Place, turns: Any) -> None:
        super().__init__(machine, place)
        self._outside = machine.last_turn
        self._given = turns
        numbers = turns.numbers if isinstance(turns, Numbers) else turns
        if hasattr(numbers, "__len__"):
            machine.extents.note(place, len(numbers))
        if isinstance(turns, Numbers) and turns.told:
            machine.told = True
            machine.extents.note_told(place)

    def __iter__(self) -> Iterator[Any]:
        rest: Iterator[Any] = iter(self._given)
        if not isinstance(self._given, Numbers) or not self._machine.dry:
            return rest
        if isinstance(self._given, Unrolled) and not self._machine.shortens:
            return rest
        self._rest, turns = rest, len(self._given.numbers)
        self._waits = Turns(turns, self._given.together, self._given.stages)
        self._machine.chain.begin_loop(self._waits)
        self._shorten(turns)
        return self

    def __next__(self) -> Any:
        if not self._turns:
            return self._as_it_is()
        if not self._goes_on():
            self._machine.last_turn = self._outside
            raise StopIteration
        if not self.unknown:
            return next(self._rest)
        self._machine.last_turn = True
        turn = -1 if self._between is None else self._between.number(FOLLOWED, self._turns - 1)
        return marked_copy(self._given.at(turn))  # known is what it is in that turn alone

    def _as_it_is(self) -> Any:
        """The next turn of a loop that is priced and not shortened."""
        try:
            number = next(self._rest)
        except StopIteration:
            self._machine.chain.end_loop(self._waits)
            raise
        self._machine.chain.next_turn(self._waits)
        return number


class While(_Loop):
    """One run of `while first < last` (or another comparison, by its name in Python's trees) that adds `step` in each turn; or of
    any other `while`, where these are not given."""

    def __init__(
        self, machine: Pricing, place: Place, comparison: str = "", first: Any = None, last: Any = None, step: Any = None
    ) -> None:
        super().__init__(machine, place)
        self._seen = 0
        numbers = [_number(value) for value in (first, last, step)] if machine.dry else [None]
        turns = 0 if None in numbers else int(_turns(comparison, *(int(number or 0) for number in numbers)))
        if turns and is_loaded([first, last, step]):
            machine.told = True
            machine.extents.note_told(place)
            self._take(comparison, [first, last, step])
        self._shorten(turns)
        self._waits, self._counted = Turns(max(1, turns)), turns
        if machine.dry:
            machine.chain.begin_loop(self._waits)

    def _take(self, comparison: str, given: list[Any]) -> None:
        """Say how many turns other programs have."""
        elsewhere = [others(value.handle) if isinstance(value, tl.tensor) else None for value in given]
        if elsewhere[2] is None and any(data is not None for data in elsewhere):
            first, last, step = (_number(one) if data is None else data for one, data in zip(given, elsewhere, strict=True))
            assert isinstance(step, int)
            self._machine.kinds.take(np.reshape(_turns(comparison, first, last, step), -1))

    def goes_on(self, test: Any) -> bool:
        """Whether there is another turn."""
        if self._turns:
            self._machine.extents.note(self._place, self._turns)
            return self._goes_on()
        more = self._more(test)
        self._seen += more
        if self._machine.dry and more:
            self._machine.chain.next_turn(self._waits)
        elif self._machine.dry:
            self._machine.chain.end_loop(self._waits)
        self._machine.extents.note(self._place, self._seen)
        return more

    def _more(self, test: Any) -> bool:
        """What a test says that is asked for. Of a value from memory that is known, no loop goes on but one that counts."""
        if not (isinstance(test, tl.tensor) and is_loaded(test) and is_known(test)):
            return bool(test)
        if self._counted:
            return self._seen < self._counted
        return bool(test) if test.handle.data.item() else False  # which is refused, or ends at once


def _number(value: Any) -> int | None:
    """A whole number that is known, or None."""
    if isinstance(value, tl.tensor) and is_known(value) and value.handle.data.size == 1 and value.dtype.is_int():
        return int(value.handle.data.item())
    value = value.value if isinstance(value, tl.constexpr) else value
    return value if type(value) is int else None


def _turns(comparison: str, first: Any, last: Any, step: int) -> Any:
    """How many turns `while first < last` has, where each adds `step`; 0 where it has none or no end. A bound may be an array of
    those of several programs.

    >>> [int(_turns(*given)) for given in (("Lt", 0, 100, 32), ("LtE", 0, 96, 32), ("Gt", 8, 0, -2), ("Lt", 0, 8, -1))]
    [4, 4, 4, 0]
    """
    last = last + {"LtE": 1, "GtE": -1}.get(comparison, 0)
    if (comparison in ("Lt", "LtE")) != (step > 0) or step == 0:
        return 0
    return np.maximum(0, -((first - last) // step))


def words(machine: Pricing) -> dict[str, Any]:
    """What the names mean that `loop_text.Loops` writes."""
    return {".for": lambda *given: For(machine, *given), ".while": lambda *given: While(machine, *given)}
