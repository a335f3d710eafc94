"""Numbers that a kernel holds others against, which are the same at every size: `offs < 3000000`, `tl.minimum(cols, 16)`.

Where results are compared all places may lie below such a number, so that nobody sees what is done beyond it at full shape. What
each comparison and each minimum is given is noted at both sizes. Where one side is one number throughout, the same at both, and
the other side lies beyond it at full shape alone, the number is made smaller as that side is, and a forward is run once more: a
threshold between two ways to do the same changes nothing. The same holds for what parts places otherwise: `row >> 10`,
`place & 0x7fff`, `row % 2048`, `cols // 4096`, `n == 16777216`.

What comes from memory is left alone, since nobody knows it at full shape, but for whole numbers among the inputs that are drawn
there, too (`known`), unless it is asked if one is this number, and for what a turn that stands for others counts as such. So is a
number that a kernel also computes with: of `min(rows - first, GROUP)`, beside which groups of GROUP rows are counted, one alone
would make no sense; and a minimum or maximum with a whole one, as in `sum / tl.maximum(count, 1)`, which guards what is divided
by. Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.kinds import known_others
from rlkernel.evaluator.cpu.loaded import is_known, is_loaded
from rlkernel.evaluator.messages.children import Held
from rlkernel.evaluator.program.schema import Program

LEFT, RIGHT = 1, 2
Place = tuple[str, int, int, str]
"""The text of a kernel or of a function that it calls, the number of a comparison in it, which of its sides may be another
number, one of them or both, and how it tells numbers apart."""
Moved = Mapping[Place, tuple[bool, float]]
"""Comparisons of which one side is another number: whether it is the left one, and which."""
ORDER, EQUAL, SHIFT, BITS, PARTS = "order", "equal", "shift", "bits", "parts"
"""How a number tells others apart."""


@dataclass(frozen=True, slots=True)
class Span:
    """The least and the largest of some numbers."""

    low: float
    high: float

    def with_(self, other: Span) -> Span:
        return Span(min(self.low, other.low), max(self.high, other.high))


Sides = tuple[Span, Span]


class Machine(Protocol):
    """Where programs run."""

    dry: bool
    last_turn: bool
    """Whether the turn of a shortened loop runs that stands for others, whose number is one of theirs."""
    limits: Limits


class Limits:
    """What the comparisons of kernels were given at both sizes."""

    def __init__(self) -> None:
        self._full: dict[Place, Sides | None] = {}
        """None: of what memory decides."""
        self._small: dict[Place, Sides] = {}
        self.moved: Moved = {}
        self._extents: set[float] = set()
        """How long axes of the tensors are where results are compared."""

    @classmethod
    def left_by(cls, held: Iterable[Held], program: Program) -> Limits:
        """What another look has noted of `program`, which ran at full shape, and has left to longer sizes."""
        made = cls()
        for one in held:
            place = program.functions[one.function].source, one.number, one.sides, one.kind
            made._full[place] = Span(*one.left), Span(*one.right)
        return made

    def note_shapes(self, shapes: Iterable[Sequence[int]]) -> None:
        """A launch is given tensors of these shapes at the smaller size."""
        for shape in shapes:
            self._extents.update(shape)

    def note(self, place: Place, left: Any, right: Any, *, dry: bool, known: bool = False) -> None:
        """One comparison is made: while launches are priced, at full shape; else at the size at which results are compared, which
        is noted of those that are known at full shape. known: whether what counts as if it came from memory is a number all the
        same."""
        if dry:
            before = self._full.get(place, ())
            if before is not None:
                known = known or not is_loaded([left, right]) or (place[3] != EQUAL and is_known([left, right]))
                sides = _sides(left, right, elsewhere=True) if known else None
                self._full[place] = _joined(before, sides)
        elif not self.moved and (full := self._full.get(place)) is not None:
            if (sides := _sides(left, right, elsewhere=False)) is None:
                return
            if not any(one.low == one.high == other.low == other.high for one, other in zip(full, sides, strict=True)):
                self._full[place] = None  # a size on either side: there is nothing to note
            self._small[place] = _joined(self._small.get(place, ()), sides) or sides

    def hidden(self, share: float = 1.0) -> Moved:
        """The comparisons whose one number decides at full shape as it never does at the smaller size, and what stands for it
        there. share: how much smaller still, because blocks may be larger than all that there is at the smaller size."""
        found: dict[Place, tuple[bool, float]] = {}
        for place, full in self._full.items():
            if full is None or (small := self._small.get(place)) is None:
                continue
            for side, (kept, other) in ((LEFT, (0, 1)), (RIGHT, (1, 0))):
                moved = _moved(place[3], (full[kept], small[kept]), full[other], small[other], share)
                if place[2] & side and moved is not None and not self._is_extent(place[3], full[kept].low):
                    found[place] = side == LEFT, moved
        return found

    def untold(self, program: Program) -> tuple[Held, ...]:
        """The comparisons of `program`, which ran at full shape, that were not made at the smaller size, or with nothing above
        zero, such as where a loop of one turn is: these sizes do not tell what their number hides."""
        numbers = {function.source: index for index, function in reversed([*enumerate(program.functions)])}
        found = []
        for (source, number, sides, kind), full in self._full.items():
            small = self._small.get((source, number, sides, kind))
            waits = full is not None and any(
                sides & side and full[kept].low == full[kept].high > 0 and (small is None or not small[other].high > 0)
                for side, kept, other in ((LEFT, 0, 1), (RIGHT, 1, 0))
            )
            if full is not None and waits and source in numbers and all(map(_is_finite, full)):
                sides_at_full = (full[0].low, full[0].high), (full[1].low, full[1].high)
                found.append(Held(numbers[source], number, sides, kind, *sides_at_full))
        return tuple(found)

    def _is_extent(self, kind: str, number: float) -> bool:
        """Whether what parts numbers is a size that is as large where results are compared, such as 16 heads."""
        return kind != ORDER and _least_changed(kind, number) in self._extents


def _is_finite(span: Span) -> bool:
    return math.isfinite(span.low) and math.isfinite(span.high)


def _joined(before: Sides | tuple[()], sides: Sides | None) -> Sides | None:
    if sides is None or not before:
        return sides
    return before[0].with_(sides[0]), before[1].with_(sides[1])


def _moved(kind: str, numbers: Sides, full: Span, small: Span, less: float) -> float | None:
    """What stands at the smaller size for a number that others are held against; None where it decides there as it does at full
    shape, or is no fixed number. numbers: what it is at full shape and there; full, small: what is held against it."""
    number = numbers[0].low
    if not (all(one == Span(number, number) for one in numbers) and math.isfinite(number)) or number <= 0:
        return None
    if not 0 < small.high < full.high:
        return None
    share = less * small.high / full.high
    if kind == ORDER:
        decides = full.low < number, full.high > number
        seen = small.low < number, small.high > number
        if all(now or not then for now, then in zip(seen, decides, strict=True)):
            return None
        return number * share if number % 1 or number * share < 1 else math.floor(number * share)
    share = less * (small.high + 1) / (full.high + 1)  # of places that are counted from zero
    if kind == EQUAL:
        if not full.low <= number <= full.high or small.low <= number <= small.high:
            return None
        return small.low if number == full.low else math.floor(number * share)
    least = _least_changed(kind, number)
    if least is None or not (small.low >= 0 and small.high < least <= full.high):
        return None
    return _scaled(kind, number, least * share)


def _least_changed(kind: str, number: float) -> float | None:
    """The least number that `>> 10`, `& 1023`, `& 1024`, `% 1024` or `// 1024` does not treat as it does all smaller ones; None
    where there is no such number."""
    whole = int(number)
    if whole != number or whole >= 1 << 62 or (kind == SHIFT and whole > 62):
        return None
    if kind == SHIFT:
        return float(1 << whole)
    if kind in (PARTS, EQUAL):
        return float(whole)
    return None if whole & (whole + 1) and whole & (whole - 1) else float(whole + whole % 2)


def _scaled(kind: str, number: float, least: float) -> float:
    """The number that tells others apart from this least one on."""
    power = int(math.log2(max(least, 1.0)))
    return power if kind == SHIFT else max(math.floor(least), 1) if kind == PARTS else (1 << power) - int(number) % 2


def _sides(left: Any, right: Any, *, elsewhere: bool) -> Sides | None:
    one, other = _span(left, elsewhere), _span(right, elsewhere)
    return None if one is None or other is None else (one, other)


def _span(value: Any, elsewhere: bool) -> Span | None:
    """The numbers that a value holds, in the programs `elsewhere`, too; None of what is no number."""
    value = value.value if isinstance(value, tl.constexpr) else value
    if isinstance(value, tl.tensor):
        handle = value.handle
        if not isinstance(handle, TensorHandle) or handle.dtype.scalar.is_ptr() or not handle.data.size:
            return None
        span = Span(float(handle.data.min()), float(handle.data.max()))
        others = known_others(handle) if elsewhere else None
        return span if others is None else span.with_(Span(float(others.min()), float(others.max())))
    return Span(float(value), float(value)) if isinstance(value, (int, float)) and abs(value) < 1e300 else None
