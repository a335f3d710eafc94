"""The share of a reference's products that matters at full shape, from counts at sizes that are small.

What masks, triangles, diagonals and bands leave of a product are the points of a polytope whose corners follow the sizes. Along
sizes that keep the ratios they have at full shape, the number of such points is a polynomial. It is found from as many counts as
its degree asks for, and must give two further ones exactly, so that nothing that chance has made zero passes for structure.
Example: n (n + 1) (n + 2) / 6 terms of a product of two triangles at n = 64, 80, ... 144, and at n = 4096 by the same polynomial.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.least_work import Matters, Share
from rlkernel.evaluator.judging.costs.needs import TooLarge, need
from rlkernel.evaluator.judging.costs.roofline import TRIANGLE
from rlkernel.evaluator.judging.sizes.resizing import is_nested, numbers_of
from rlkernel.evaluator.judging.zeros.mattering import ATTENTION, PRODUCTS, Count, Unknown, count
from rlkernel.evaluator.program.operators import base_name
from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.reference import load_reference
from rlkernel.reference_text import shrink, small_constants

MOST_ELEMENTS = 1 << 23
"""How many elements a forward may make at the sizes at which is counted."""
MOST_FLOPS = 1 << 27
DEGREE = 3
"""The highest degree of a polynomial that is looked for: the axes of a matrix product."""
STEPS = (16, 8)
"""How many steps from one size to the next the largest has: small ones, so that a window is shorter than the smallest size, or
large ones, which a block of a mask may divide."""
CHECKED = 2
"""Counts that the polynomial must give besides those that it is made from."""
OF_INPUTS = 0.9
"""The share of each input from which on nothing is said, where there are no products."""
_HIDING = {
    "block_diag", "constant_pad_nd", "copy", "diag", "diag_embed", "diagonal_copy", "diagonal_scatter", "eq", "eye", "fill", "ge",
    "gt", "index_put", "le", "lt", "masked_fill", "ne", "scatter", "select_scatter", "slice_scatter", "tril", "triu", "where",
    "zero",
}  # fmt: skip
"""Operators that make structural zeros. Where a forward and its module have none, nobody looks for any."""

Place = tuple[str, int]
"""A constant of a file, and which of its numbers."""


@dataclass(frozen=True, slots=True)
class Studied:
    """A problem, of which the share is found once, whatever the sizes at which results are compared."""

    name: str
    text: str
    """Its file without these sizes."""
    profile: DeviceProfile = field(compare=False)
    source: str = field(compare=False)
    least: float = TRIANGLE
    """The share of each product from which on nothing is said; of each input where there are no products."""


def multiplies(program: Program) -> bool:
    """Whether a reference has products of which a part may matter."""
    return any(base_name(step.op) in PRODUCTS | {ATTENTION, "convolution"} for step in program.forward if isinstance(step, Op))


def makes_zeros(program: Program) -> bool:
    """Whether a reference has an operator that makes structural zeros."""
    steps = [step for step in (*program.init, *program.forward) if isinstance(step, Op)]
    return any(base_name(step.op) in _HIDING or base_name(step.op) == ATTENTION for step in steps)


@functools.lru_cache(256)
def full_share(problem: Studied) -> Matters | None:
    """What of a reference's products matters at full shape; None where it is at least `least` of each, or cannot be said."""
    try:
        return _Study(problem).found()
    except Exception:  # gradients may not be defined, sizes may not fit together: then nothing is known
        return None


class _Study:
    """Counts at several sizes of one problem."""

    def __init__(self, problem: Studied) -> None:
        self._source, self._name, self._profile, self._least = problem.source, problem.name, problem.profile, problem.least
        pairs = small_constants(problem.source, name=problem.name)
        self._small: dict[str, Any] = {key: small for key, (_, small) in pairs.items()}
        self._whole: dict[str, Any] = {key: full for key, (full, _) in pairs.items()}
        whole = {
            (key, place): number
            for key, (full, _) in pairs.items()
            if not is_nested(full)
            for place, number in enumerate(numbers_of(full))
        }
        self._full: dict[Place, int] = {place: number for place, number in whole.items() if number != self._now(place)}

    def found(self) -> Matters | None:
        """Raises Unknown, and whatever the reference raises at sizes that do not fit it."""
        if not self._fits({}):
            return None
        larger = {place: self._larger(place) for place in self._full}
        if not any(self._matter(sizes) < self._least for sizes in ({}, *({place: times} for place, times in larger.items()))):
            return None
        relevant = self._relevant(larger)
        if not relevant:
            return _along((1,), [self._count({}, 2.0)], 1)
        while True:
            parts = math.gcd(*(self._full[place] for place in relevant))
            unit = {place: self._full[place] // parts for place in relevant}
            largest = self._largest(unit, parts)
            top = _times(unit, largest)
            if self._matter(top) >= self._least:
                return None
            if not (others := self._relevant_besides(top)):
                break
            relevant += others
        for part in STEPS:
            step = 2 ** int(math.log2(max(1, largest // part)))
            last = largest - (largest % step if parts % step == 0 else 0)
            times = [last - step * back for back in range(DEGREE + 1 + CHECKED)][::-1]
            if times[0] > 0:
                with suppress(Unknown):
                    return _along(times, [self._count(_times(unit, time), 2.0) for time in times], parts)
        return None

    def _now(self, place: Place) -> int:
        return int(numbers_of(self._small[place[0]])[place[1]])

    def _resized(self, sizes: Mapping[Place, int]) -> str:
        """The file at its small sizes, but for these."""
        made = dict(self._small)
        for (key, place), number in sizes.items():
            old = made[key]
            made[key] = number if isinstance(old, int) else type(old)(
                number if index == place else item for index, item in enumerate(old)
            )  # fmt: skip
        return shrink(self._source, {key: [self._whole[key], size] for key, size in made.items()})

    def _count(self, sizes: Mapping[Place, int], enough: float) -> Count:
        return count(load_reference(self._resized(sizes), small=False, name=self._name), self._profile, enough)

    def _fits(self, sizes: Mapping[Place, int]) -> bool:
        try:
            found = need(self._resized(sizes), self._name, self._profile, MOST_ELEMENTS)
        except TooLarge:
            return False
        return found.flops <= MOST_FLOPS and found.inputs + found.weights <= MOST_ELEMENTS

    def _matter(self, sizes: Mapping[Place, int]) -> float:
        """The least share of a product's terms, or one that says nothing; 1 at sizes that do not fit together."""
        try:
            return self._count(sizes, self._least).least
        except Exception:  # a reference may refuse such sizes in its own way
            return 1.0

    def _larger(self, place: Place) -> int:
        """How large one number can be alone; 0 where no larger one fits."""
        try:
            found = self._largest({place: 1}, self._full[place])
        except Exception:  # it has a fixed ratio to another one
            return 0
        return found if found > self._now(place) else 0

    def _relevant(self, larger: Mapping[Place, int]) -> tuple[Place, ...]:
        """The numbers that shares depend on: those that change it where they alone are larger, or that cannot be alone."""
        usual, found = self._count({}, 2.0), []
        for place, times in larger.items():
            try:
                same = times > 0 and self._count({place: times}, 2.0).exact == usual.exact
            except Exception:  # as above
                same = False
            if not same:
                found.append(place)
        return tuple(found)

    def _relevant_besides(self, sizes: Mapping[Place, int]) -> tuple[Place, ...]:
        """The numbers that change the share at these sizes, and did not at the small ones. Example: of a window that is longer
        than the small sequence, its length."""
        usual = self._count(sizes, 2.0).exact
        rest = {place: min(2 * self._now(place), full) for place, full in self._full.items() if place not in sizes}
        return tuple(place for place, number in rest.items() if self._count({**sizes, place: number}, 2.0).exact != usual)

    def _largest(self, unit: Mapping[Place, int], parts: int) -> int:
        """How many times these sizes fit: a number of `parts` at most that is halved, or one and a half of that."""
        times = parts
        while not self._fits(_times(unit, times)):
            times = times // 2
            if not times:
                raise Unknown
        more = times * 3 // 2
        return more if more <= parts and self._fits(_times(unit, more)) else times


def _times(unit: Mapping[Place, int], times: int) -> dict[Place, int]:
    return {place: times * number for place, number in unit.items()}


def _along(times: Sequence[int], counts: Sequence[Count], at: int) -> Matters:
    """The shares at so many times a size, by counts at fewer times. Raises Unknown where no polynomial gives them all."""
    steps, places = counts[0].products.keys(), range(len(counts[0].inputs))
    if any(one.products.keys() != steps for one in counts):
        raise Unknown

    def at_full(value: Callable[[Count], int]) -> Fraction:
        return extended(times, [value(one) for one in counts], at)

    def share(matter: Callable[[Count], int], every: Callable[[Count], int]) -> float:
        part, whole = at_full(matter), at_full(every)
        if not 0 <= part <= whole:
            raise Unknown
        return float(part / whole) if whole else 1.0

    def of_step(step: int) -> Share:
        terms = share(lambda one: one.products[step].matter, lambda one: one.products[step].all)
        sums = share(lambda one: one.products[step].sums, lambda one: one.products[step].all_sums)
        if not terms:
            raise Unknown  # of nothing, nothing could be asked for
        return Share(terms, sums)

    inputs = (share(lambda one, at=at: one.inputs[at], lambda one, at=at: one.all_inputs[at]) for at in places)  # type: ignore[misc]
    return Matters({step: of_step(step) for step in steps if any(one.exact[step] < 1 for one in counts)}, tuple(inputs))


def extended(times: Sequence[int], values: Sequence[int], at: int) -> Fraction:
    """The polynomial of degree `DEGREE` through the last values, at another place. Raises Unknown where it misses a value.

    >>> extended([1, 2, 3, 4, 5, 6], [1, 4, 9, 16, 25, 36], 100)
    Fraction(10000, 1)
    """
    nodes, known = times[-DEGREE - 1 :], values[-DEGREE - 1 :]

    def polynomial(t: int) -> Fraction:
        total = Fraction(0)
        for node, value in zip(nodes, known, strict=True):
            rest = [other for other in nodes if other != node]
            total += value * math.prod((Fraction(t - other, node - other) for other in rest), start=Fraction(1))
        return total

    if any(polynomial(t) != value for t, value in zip(times, values, strict=True)):
        raise Unknown
    return polynomial(at)
