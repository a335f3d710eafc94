"""How long what repeats in a kernel is: the turns of each loop, and the programs of its grid along each axis.

A loop that has one turn where results are compared, and several at full shape, was not seen to go on from one turn to the next.
"""

from __future__ import annotations

from collections.abc import Iterable

from rlkernel.evaluator.messages.children import Extent
from rlkernel.evaluator.program.schema import Program

AXES = 3
"""The axes of a grid, whose places come before those of loops."""
Place = tuple[str, int]
"""The text of a kernel or of a function that it calls, and what of it, see `Extent.place`."""


class Extents:
    """The most that each place of the kernels was seen to have."""

    def __init__(self) -> None:
        self._most: dict[Place, int] = {}

    def note(self, place: Place, count: int) -> None:
        """A loop has so many turns, or a grid so many programs along an axis."""
        if count > self._most.get(place, 0):
            self._most[place] = count

    def repeated(self, program: Program) -> tuple[Extent, ...]:
        """What has several turns here, where `program` ran."""
        numbers = {function.source: index for index, function in reversed([*enumerate(program.functions)])}
        places = [(*place, count) for place, count in self._most.items() if count > 1]
        return tuple(sorted(Extent(numbers[source], place, count) for source, place, count in places if source in numbers))

    def short(self, repeated: Iterable[Extent], program: Program) -> tuple[Extent, ...]:
        """What has one turn at most here, of what is `repeated` at full shape, where `program` ran."""
        return tuple(
            one for one in repeated if self._most.get((program.functions[one.function].source, one.place), 0) <= 1
        )  # fmt: skip
