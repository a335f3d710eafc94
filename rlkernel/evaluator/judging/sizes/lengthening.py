"""Longer sizes for a second look: those at which a loop has several turns that has one where results are compared first.

Some of the constants that were reduced are as large as in the problem's file, or that halved until it fits; the others are as
they were, or smaller where that is the price. Which of them are long, in this order:

1. those that say no batch, together: 8192 columns of few rows;
2. each alone, the most reduced one first: a product's inner extent. A size and places in it (`places`) are one;
3. those that are one number at full shape together, for a text that has it: rows and columns of a square;
4. those that had to be halved, as in the file, where all others are smaller, also those that were not reduced: a product that is
   split where its inner extent is 16384.

Halving what is at full size keeps its divisors, so that a kernel without masks stays right. Example: `rows, columns = 4096, 8192`
that are compared at 512 and 256 are looked at again at 128 and 8192.

Sizes that fill a kernel's blocks as the full ones do (`filling`) are another kind of look. They are the full ones themselves,
where these are little enough work, and such that each leaves the remainder by 128 that it leaves at full shape, so that a kernel
that needs no mask there needs none here. Example: a product of 512 x 768 and 768 x 32000, compared at an inner extent of 192 and
250 columns, is looked at again at 128 rows, 256 and 384. For kernels whose blocks are rows, the remainder by 1024 is left, too.
Where that is too much work, the batch is as it was at the first sizes, and then what fills no block at full shape either, such
as heads; and then a number that was not made smaller, such as heads once more, keeps its ratio to what is. Last come a batch of
images and their channels as at full shape, each image as at the first sizes: a kernel that goes over all elements in blocks
needs no mask there that it does not need at full shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import rshift
from typing import Any

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.needs import Need
from rlkernel.evaluator.judging.sizes.constants import counts_of, sizes_of, with_small
from rlkernel.evaluator.judging.sizes.made_inputs import batch_names, image_names, leading_names, names_beside
from rlkernel.evaluator.judging.sizes.places import LONG, plain_names, with_places
from rlkernel.evaluator.judging.sizes.resizing import Sizes, largest_of, map_numbers, numbers_of
from rlkernel.evaluator.judging.sizes.size_search import INTERPRETED_ELEMENTS, Search, burden_of
from rlkernel.evaluator.messages.oracle import Lighter, Longer
from rlkernel.reference_text import prompt_source, small_of
from rlkernel.types import Problem

MOST_BURDEN = 4.0
"""How far a second look's burden may be above what is comfortable. Its work is bounded besides, see `cpu.pace`."""
MOST_OF_FULL = 32.0
"""The same for the full shape itself."""
MOST_WHOLE = 5.0
"""The same where the number of groups or heads pays, too, so that what is long is as at full shape."""
MOST_MADE = int(MOST_WHOLE * INTERPRETED_ELEMENTS)
"""The elements that a reference may make at longer sizes. It is stopped there, because a loop over what is long takes seconds to
trace, and is traced at many sizes that are too large."""
SHRINKS = (1, 2, 4, 8, 16, 32, 64)
"""By what the other constants may be divided."""
LIGHTER = 8
"""By what they are divided once more for a candidate that takes the interpreter too long."""
FEWEST = 4
"""What is left of them there, where there are so many: of two rows, one of another length may be left out unseen."""
BLOCKS = ((128, 64, 32, 16), (1024, 512, 256))
"""Extents of a kernel's blocks, those of tiles and those of rows: of each, the largest that is little enough work."""
HALVINGS = 12
"""How often what is long may be halved."""


def lengthened(problem: Problem, profile: DeviceProfile, halvings: int = 0, *, heads_pay: bool = False) -> list[Longer]:
    """The longer sizes for a problem whose `SMALL` is where results are compared first; none where it has none, or where
    the reference cannot be counted at full shape. `halvings`: how often at least what is long is halved. heads_pay: whether the
    number of groups or heads may be smaller for what is halved, too."""
    small, source = small_of(problem.source), prompt_source(problem.source, name=problem.name)
    full = {name: value for name, value in counts_of(source).items() if name in small and _alike(value, small[name])}
    reduced = {name: value for name, value in full.items() if largest_of(value) > largest_of(small[name])}
    if not reduced:
        return []
    bare = replace(problem, source=source)
    whole = _counted(Search(bare, profile, _fits, None), small)
    if whole is None:
        return []
    found: list[Longer] = []
    families = list(_families(reduced, small, batch_names(source), plain_names(source)))
    for family, narrow in [(family, False) for family in families] + [(family, True) for family in families if not halvings]:
        search, long = Search(bare, profile, _fits, MOST_MADE, whole.names), {name: reduced[name] for name in family}
        if narrow and any(all(one.sizes.get(name) == size for name, size in long.items()) for one in found):
            continue
        sizes = _narrow(search, small, long) if narrow else _longest(search, small, long, halvings, heads_pay=heads_pay)
        if sizes is None or sizes in [one.sizes for one in found]:
            continue
        others = {name: small[name] if name in family else value for name, value in sizes.items()}
        beside = None if others == small else with_small(source, others)
        lighter = _lighter(Search(bare, profile, _fits, None, whole.names), sizes, family)
        found.append(Longer(with_small(source, sizes), sizes, beside, lighter))
    return found


def _counted(search: Search, small: Sizes) -> Need | None:
    """What the reference needs at full shape, or at its small one where a loop calls more operators than are counted."""
    found = search.need_of({})
    return search.need_of(small) if found is None and search.stopped else found


def filling(problem: Problem, profile: DeviceProfile) -> list[Longer]:
    """The sizes that fill blocks as the full ones do, as far as they are little enough work: first the full ones themselves, then
    those of tiles."""
    small, source = small_of(problem.source), prompt_source(problem.source, name=problem.name)
    full = {name: value for name, value in counts_of(source).items() if name in small and _alike(value, small[name])}
    bare = replace(problem, source=source)
    whole = Search(bare, profile, _fits, None).need_of({}) if any(full[name] != small[name] for name in full) else None
    if whole is None:
        return []
    search, batch = Search(bare, profile, _fits, None, whole.names), batch_names(source)
    looks = _as_full(search, whole, full)
    for blocks in BLOCKS:
        every = [small | _filled(full, block) for block in blocks]
        few = [sizes | {name: small[name] for name in full if name in batch} for sizes in every]
        fewest = [sizes | _below(block, full, small) for sizes, block in zip(few, blocks, strict=True)]
        alike = [sizes | _in_ratio(full, sizes, counts_of(source)) for sizes in every]
        for sizes in (one for ways in zip(every, few, fewest, alike, strict=True) for one in ways):
            found = search.need_of(sizes) if sizes != small else None
            if found is not None and search.fits(found) and search.runs(sizes, found):
                looks.append(Longer(with_small(source, sizes), sizes, None))
                break
    rows = small | {name: full[name] for name in full.keys() & image_names(source)}
    found = search.need_of(rows) if rows != small else None
    if found is not None and search.fits(found) and search.runs(rows, found):
        looks.append(Longer(with_small(source, rows), rows, None))
    return looks


def _as_full(search: Search, whole: Need, full: Sizes) -> list[Longer]:
    """The full shape, where it is little enough work: it says all that there is to say."""
    fits = burden_of(whole) <= MOST_OF_FULL and search.runs({}, whole)
    return [Longer(with_small(search.problem.source, full), full, None)] if fits else []


def _filled(full: Sizes, block: int) -> Sizes:
    """Sizes with the remainders by `block` of the full ones, above it where these are. Those that differ at full size differ.

    >>> _filled({"M": 512, "K": 768, "N": 32000, "heads": 12, "odd": 50257}, 128)
    {'M': 128, 'K': 256, 'N': 384, 'heads': 12, 'odd': 209}
    """
    made: dict[int, int] = {}
    for number in sorted({number for value in full.values() for number in numbers_of(value)}):
        now = min(number, block + number % block)
        while now < number and now in made.values():
            now += block
        made[number] = min(now, number)
    return {name: map_numbers(lambda number, _: made[number], value, 0) for name, value in full.items()}


def _below(block: int, full: Sizes, small: Sizes) -> Sizes:
    """The first sizes of what fills no block of this extent at full shape either, such as a number of heads."""
    return {name: small[name] for name, value in full.items() if largest_of(value) < block}


def _in_ratio(full: Sizes, sizes: Sizes, counts: Sizes) -> Sizes:
    """The counts that are not among some sizes, divided by what is left of these at least, where that leaves no remainder.

    >>> _in_ratio({"features": 1024, "rows": 512}, {"features": 256, "rows": 128}, {"features": 1024, "rows": 512, "heads": 16})
    {'heads': 4}
    """
    pairs = [pair for name, value in full.items() for pair in zip(numbers_of(value), numbers_of(sizes[name]), strict=True)]
    by = min((value // now for value, now in pairs if value > now), default=1)
    kept = {name: value for name, value in counts.items() if name not in sizes}
    return {name: value // by for name, value in kept.items() if type(value) is int and by > 1 and value % by == 0}


def _lighter(search: Search, sizes: Sizes, family: list[str]) -> Lighter | None:
    """The look with all that is not long in it divided once more, where the reference runs so, its batch and what lies within it,
    too; where nothing is left of these, the number of groups or heads."""
    source = search.problem.source
    every, counts, names = sizes_of(source), counts_of(source), batch_names(source) | leading_names(source)
    batch = {name: every[name] for name in names if name in every}
    heads = {name: value for name, value in counts.items() if name not in every}
    for paying in (batch | sizes, heads | batch | sizes):
        tried: list[Sizes] = []
        for way in (_lighter_and_even, _made_lighter):
            fewer = {name: value if name in family else map_numbers(way, value, LIGHTER) for name, value in paying.items()}
            fewer = _told_apart(fewer, counts, dict.fromkeys(family), names_beside(source))
            if fewer in tried or all(value == sizes.get(name, counts.get(name)) for name, value in fewer.items()):
                continue
            tried.append(fewer)
            found = search.need_of(fewer)
            if found is not None and search.runs(fewer, found):
                return Lighter(with_small(source, fewer), fewer)
        if tried:
            return None
    return None


def _fits(found: Need) -> bool:
    return burden_of(found) <= MOST_BURDEN


def _families(reduced: Sizes, small: Sizes, batch: set[str], plain: set[str]) -> Iterator[list[str]]:
    """The names of the constants that are long together."""
    many = with_places(reduced, [name for name in reduced if name not in batch], plain)
    if many:
        yield many
    for name in sorted(reduced, key=lambda name: -largest_of(reduced[name]) / largest_of(small[name])):
        alone = with_places(reduced, [name], plain)
        if alone != many:
            yield alone
    for size in dict.fromkeys(value for value in reduced.values() if type(value) is int and value > LONG):
        alike = [name for name in reduced if reduced[name] == size]
        if len(alike) > 1 and alike != many:
            yield alike


def _longest(search: Search, small: Sizes, long: Sizes, halvings: int, *, heads_pay: bool) -> Sizes | None:
    """The largest sizes that fit; None if none does that is larger than `small`."""
    source = search.problem.source
    every, batch, beside = counts_of(source), batch_names(source), names_beside(source)
    others = {name: small.get(name, every[name]) for name in every if name not in long and (name in small or name in batch)}
    counts = {name: value for name, value in every.items() if name not in sizes_of(source) and name not in others.keys() | long}
    leading = {name: every[name] for name in leading_names(source) if name in every and name not in others.keys() | long}
    for halving in range(halvings, HALVINGS):
        now = {name: map_numbers(max, map_numbers(rshift, value, halving), small[name]) for name, value in long.items()}
        if all(value == small[name] for name, value in now.items()):
            return None
        tried: list[Sizes] = []
        ways = [(others, MOST_BURDEN)]
        if heads_pay:
            ways.append((others | counts | leading, MOST_WHOLE))
        elif not halving:
            ways += [(others | {name: value}, MOST_WHOLE) for name, value in counts.items()]
        for paying, most in ways:
            for shrink in SHRINKS:
                fewer = {name: map_numbers(_divided, value, shrink) for name, value in paying.items()}
                sizes = small | {name: value for name, value in fewer.items() if value != every[name]} | now
                sizes = _told_apart(sizes, every, long, beside)
                if sizes in tried:
                    continue
                tried.append(sizes)
                found = search.need_of(sizes)
                if found is not None and burden_of(found) <= most and search.runs(sizes, found):
                    return sizes
                if search.stopped and not search.crowded:  # a loop over what is long, of which no other size changes the turns
                    break
    return None


def _narrow(search: Search, small: Sizes, long: Sizes) -> Sizes | None:
    """The sizes with what is long as in the file and all others divided; None if none of these fits."""
    every, beside = counts_of(search.problem.source), names_beside(search.problem.source)
    for shrink in SHRINKS:
        fewer = {name: map_numbers(_divided, value, shrink) for name, value in every.items() if name not in long}
        sizes = small | {name: value for name, value in fewer.items() if value != every[name]} | long
        sizes = _told_apart(sizes, every, long, beside)
        found = search.need_of(sizes)
        if found is not None and burden_of(found) <= MOST_BURDEN and search.runs(sizes, found):
            return sizes
        if search.stopped and not search.crowded:
            return None
    return None


def _told_apart(sizes: Sizes, every: Sizes, long: Sizes, beside: Sequence[tuple[str, str]]) -> Sizes:
    """The same without two equal sizes that stand in the same place of two tensors and differ at full shape: what is not long is
    doubled if it is the larger one there, or else halved. Otherwise whoever takes one for the other would be right.

    >>> _told_apart({"Q": 4, "K": 4, "L": 8}, {"Q": 16, "K": 4, "L": 512}, {"K": 4}, [("Q", "K")])
    {'Q': 8, 'K': 4, 'L': 8}
    >>> _told_apart({"Q": 4, "K": 4, "L": 8}, {"Q": 16, "K": 4, "L": 512}, {"Q": 4}, [("Q", "K")])
    {'Q': 4, 'K': 2, 'L': 8}
    >>> _told_apart({"Q": 8, "K": 8}, {"Q": 12, "K": 8}, {"K": 8}, [("Q", "K")])
    {'Q': 12, 'K': 8}
    """
    found = every | sizes
    for larger, smaller in beside:
        if found[larger] == found[smaller] > 1:
            if larger not in long:
                found[larger] = min(2 * found[larger], every[larger])
            elif smaller not in long:
                found[smaller] //= 2
    return {name: value for name, value in found.items() if name in sizes or value != every[name]}


def _divided(number: int, by: int) -> int:
    return max(number // by, min(number, 2))


def _made_lighter(number: int, by: int) -> int:
    return max(number // by, min(number, FEWEST))


def _lighter_and_even(number: int, by: int) -> int:
    """The same of a number that two divides, which stays so: half of a window of 25 on both sides is none of 25.

    >>> _lighter_and_even(200, 8), _made_lighter(200, 8), _lighter_and_even(77, 8)
    (26, 25, 9)
    """
    found = _made_lighter(number, by)
    return found + found % 2 if number % 2 == 0 else found


def _alike(value: Any, other: Any) -> bool:
    """Whether two sizes have as many numbers."""
    if isinstance(value, (tuple, list)):
        return isinstance(other, (tuple, list)) and len(value) == len(other) and all(map(_alike, value, other))
    return type(value) is type(other) is int
