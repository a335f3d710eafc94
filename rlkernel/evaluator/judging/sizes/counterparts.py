"""What stands at smaller sizes for the numbers of a problem's full shape.

The reference's tensors tell it, which are traced at both sizes: a number is an axis, else the product of axes that lie side by
side, else a simple multiple or part of one of these. A number that stands for several things, such as 64 samples of 64 heads, is
either the smallest of them or as it is. So is a part of a size, and a number that is made of one size alone, such as 0.088388 for
the root of 128 channels: each keeps its ratio to that.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rlkernel.evaluator.judging.sizes.made_inputs import HOISTED
from rlkernel.evaluator.judging.sizes.resizing import numbers_of

Shape = tuple[int, ...]
Counterparts = Mapping[int, tuple[int, ...]]
"""A number at full shape -> what may stand in its place at smaller sizes, ascending; itself where that is not known, or it is an
axis that stays."""
MOST_NUMBERS = 4096
"""Numbers that may have a counterpart."""
PARTS = (2, 4, 8, 16)
MOST_OF_BLOCK = 1 << 12
"""Powers of two up to which a number is rather the extent of a kernel's block than a multiple or a part of a size."""
NEXT = (1, 2)
"""What is added to an axis or taken from it, such as a window's edge."""
LEAST_MADE = 32
"""The smallest size of which a number is taken to be made."""
ALIKE = 1e-5
"""How far from such a number it may be, relative."""
FORMS: tuple[Callable[[int], float], ...] = (
    lambda size: 1 / size, lambda size: size**0.5, lambda size: size**-0.5, lambda size: size**-0.5 * math.log2(math.e)
)  # fmt: skip
"""What is made of sizes: means, and scales of attention, also for powers of two."""


def counterparts(constants: Mapping[str, Any], shapes: Iterable[tuple[Shape, Shape]]) -> dict[int, tuple[int, ...]]:
    """What stands at smaller sizes for each number of the full shape that is another one there, and for axes that stay.

    constants: name -> [full value, small value]; shapes: those of the reference's tensors, at full shape and at smaller sizes.

    >>> counterparts({}, [((64, 8, 512), (2, 8, 32))])[64 * 8]
    (32,)
    >>> counterparts({}, [((64, 8, 512), (2, 8, 32))])[8 * 512]
    (256,)
    >>> counterparts({}, [((64, 64), (4, 64))])[64]
    (4, 64)

    Where two numbers would be the same one, who writes the wrong one of them would be right. So it stands for the one that comes
    first in that order, or for neither.

    >>> [counterparts({}, [((16384, 4096, 512), (32, 32, 64))])[number] for number in (16384, 4096, 512)]
    [(16384,), (4096,), (64,)]
    """
    pairs = list(dict.fromkeys(shapes))
    axes = [one for full, small in pairs for one in zip(full, small, strict=True)]
    axes += [one for full, small in constants.values() for one in zip(numbers_of(full), numbers_of(small), strict=False)]
    runs = [one for pair in pairs for one in _runs(*pair)]
    found: dict[int, tuple[int, ...]] = {}
    taken: set[int] = set()
    for rank in (axes, runs, _near(axes + runs)):
        values: dict[int, set[int]] = {}
        for full, small in rank:
            if type(full) is type(small) is int and full >= HOISTED and full not in found:
                values.setdefault(full, set()).add(small)
        often = Counter(small for smaller in values.values() for small in smaller)
        for full, smaller in values.items():
            alone = all(often[small] == 1 and small not in taken for small in smaller)
            found[full] = tuple(sorted(smaller)) if alone else (full,)
        taken |= often.keys()
    return dict(one for _, one in zip(range(MOST_NUMBERS), found.items(), strict=False))


def _runs(full: Shape, small: Shape) -> Iterator[tuple[int, int]]:
    """The products of axes that lie side by side."""
    for start in range(len(full)):
        for end in range(start + 2, len(full) + 1):
            yield math.prod(full[start:end]), math.prod(small[start:end])


def _near(pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Simple multiples and parts of numbers, and numbers beside them; none of those that blocks often have."""
    for full, small in dict.fromkeys(pairs):
        if full == small:
            continue
        made = [(full * part, small * part) for part in PARTS]
        made += [(full // part, small // part) for part in PARTS if full % part == small % part == 0]
        made += [one for more in NEXT for one in ((full + more, small + more), (full - more, max(1, small - more)))]
        yield from (one for one in made if one[0] & (one[0] - 1) or one[0] > MOST_OF_BLOCK)


def parts(value: int, known: Counterparts, *, rounded: bool = False) -> tuple[int, ...]:
    """What may stand at smaller sizes for a part of a size, ascending; nothing for what is a size itself. rounded: whether it is
    rounded up where no size has a whole part there, as the blocks of a grid are counted.

    >>> parts(32, {2048: (256,)}), parts(32, {2048: (256,), 32: (32,)}), parts(31, {2048: (256,)})
    ((4,), (), ())
    >>> parts(15625, {4000000: (225,)}), parts(15625, {4000000: (225,)}, rounded=True)
    ((), (1,))
    """
    if value < 1 or value in known:
        return ()
    wholes = [(full // value, small) for full, smaller in known.items() if full % value == 0 for small in smaller if small < full]
    exact = {small // count for count, small in wholes if small % count == 0}
    return tuple(sorted(exact or {-(-small // count) for count, small in wholes if rounded}))


class Made:
    """The numbers that are made of sizes, looked up without going through all of them."""

    def __init__(self, known: Counterparts) -> None:
        self._known = known
        sizes = [size for size in known if size >= LEAST_MADE]
        self._all = sorted((form(size), size, number) for size in sizes for number, form in enumerate(FORMS))

    def of(self, value: float, *, divides: bool = False) -> tuple[float, ...]:
        """What may stand at smaller sizes for a number that is made of a size, in the order of these; nothing where it may be
        made of several, or is a size itself. divides: whether something is divided by it, as scores of 64 channels are by 8, also
        where there are 8 heads.

        >>> Made({64: (16,)}).of(0.125), Made({1024: (64,), 32: (8,)}).of(0.03125), Made({64: (16,)}).of(0.126)
        ((0.25,), (), ())
        >>> Made({64: (16,), 8: (8,)}).of(8.0), Made({64: (16,), 8: (8,)}).of(8.0, divides=True)
        ((), (4.0,))
        """
        if value in self._known and not divides:
            return ()
        first = bisect_left(self._all, (value * (1 - ALIKE),))
        found = [one for one in self._all[first : first + 2] if one[0] <= value * (1 + ALIKE)]
        if len(found) != 1:
            return ()
        (whole, size, number) = found[0]
        return tuple(value * FORMS[number](smaller) / whole for smaller in self._known[size])
