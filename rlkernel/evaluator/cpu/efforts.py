"""What kernels compute for each element of the blocks that they store, at full shape and where results are compared.

A candidate may be right at the small size and leave out work at full shape alone, whatever tells it that: 24 turns of a loop that
are `24 - (n >> 20)`, an `if n == 16777216`, a number of turns that host code gives. Bytes and products have floors of their own;
what else a kernel computes for an element does not become less where a problem becomes larger. Floating-point operations count:
whole numbers are places and masks, which a kernel may do without where its blocks are filled. Elements that masks leave out
count, so that a block that is not filled takes as much for each of its elements as one that is. What the elements of a block
share, such as a factor of their row, becomes less for each of them where blocks are larger, and is not asked for. What is
computed on larger blocks than any that is stored, as for a histogram, may become less for each element that is stored. Then it
may not become less for each that is loaded, nor for each of the problem's inputs: who loads a row again in each turn of a loop
loads less, too, where it takes fewer. The same holds of a kernel with a store of which memory decides whether it is done: at full
shape it counts as done in each turn, and here as often as it is.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.program.schema import Program

FEW = 4.0
"""Operations for an element below which a kernel is not asked: those that a mask takes may be most of them."""
Effort = tuple[float, float, float, float]
"""Floating-point operations, and elements of the blocks that are stored, of those that are stored whatever memory holds, and of
those that are loaded."""
LEAST_FILLED = 0.125
"""The share of a loaded block that counts as filled at the least, however much of it masks leave out."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What one kernel has done in all its launches."""

    operations: float = 0.0
    """On floating-point numbers."""
    stored: float = 0.0
    perhaps: float = 0.0
    loaded: float = 0.0
    """Elements of the blocks that are stored, of those where memory decides it, and of those that are loaded."""
    inside: float = 0.0
    """Elements of the blocks that are loaded, as far as masks leave them in."""
    unshared: float = 0.0
    """Operations that a block's elements do not share."""
    larger: float = 0.0
    """Operations on larger blocks than any that is stored."""

    def and_of(self, counts: Counts) -> _Part:
        """The same with one more launch."""
        return _Part(
            self.operations + counts.on_floats, self.stored + counts.lanes, self.perhaps + counts.perhaps,
            self.loaded + counts.loaded, self.inside + counts.inside, self.unshared + counts.for_elements,
            self.larger + counts.for_larger,
        )  # fmt: skip


class Efforts:
    """The efforts of kernels, by their texts."""

    def __init__(self) -> None:
        self._of: dict[str, _Part] = {}

    def note(self, source: str, counts: Counts) -> None:
        """A kernel was launched."""
        self._of[source] = self._of.get(source, _Part()).and_of(counts)

    def of(self, program: Program) -> dict[int, Effort]:
        """Function -> the effort of its launches, where `program` ran."""
        numbers = {function.source: index for index, function in reversed([*enumerate(program.functions)])}
        return {
            numbers[source]: (part.operations, part.stored, part.stored - part.perhaps, part.loaded)
            for source, part in self._of.items()
            if source in numbers
        }

    def share(self, full: Mapping[int, Effort], program: Program, growth: float) -> float:
        """How much of what kernels compute here for their elements they compute at full shape, where `program` has these efforts;
        1 where nothing is known. growth: how many times as many elements the problem's inputs have there."""
        done = expected = 0.0
        for function, (operations, stores, certain, loads) in full.items():
            here = self._of.get(program.functions[function].source, _Part())
            if here.stored and stores and here.unshared >= FEW * here.stored:
                more = of_loads = stores / here.stored
                if here.loaded:
                    of_loads = max(loads / here.loaded, growth * max(LEAST_FILLED, here.inside / here.loaded))
                if certain < stores:
                    more = max(min(more, of_loads), certain / here.stored)
                done += operations
                expected += (here.unshared - here.larger) * more + here.larger * min(more, of_loads)
        return done / expected if expected else 1.0
