"""Sizes beside those at which a candidate is right, at which each that was made smaller has another value.

A number of a candidate's text may be right at one small size alone: 0.25 as the scale of attention, of 128 channels that are
compared as 16. It is not right where these are 8 or 32. So whoever is right only once its own sizes were made smaller, or only at
some sizes, must be right at such ones, too.

All sizes at once are doubled, or halved where that is too much work. Then those that say no batch are, together and each alone,
at the price of three quarters of the batch, or of none of it; the batch pays, too, where it was not made smaller. What says a
batch has a fourth less: where it is a power of two as others are, its product with one of them would be another one. Numbers
that differ at full size stay different: otherwise a number of a text might stand for either. Places in an axis stay in it
(`places`).

Who is wrong at some sizes and right at others may be right there because what it does wrong is rare: of 32 tokens hardly one is
in the first 20 of 16,384 slots, and of 4,096 tokens five are. So there are looks besides at which one smaller size after the
other is as at full shape, the most reduced one first, at the price of the others if need be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.needs import Need
from rlkernel.evaluator.judging.sizes.constants import counts_of, with_small
from rlkernel.evaluator.judging.sizes.made_inputs import batch_names, leading_names
from rlkernel.evaluator.judging.sizes.places import outside, plain_names
from rlkernel.evaluator.judging.sizes.resizing import Sizes, largest_of, map_numbers, numbers_of
from rlkernel.evaluator.judging.sizes.size_search import Search, burden_of
from rlkernel.evaluator.messages.oracle import Longer
from rlkernel.reference_text import prompt_source, small_of
from rlkernel.types import Problem

MOST_BURDEN = 8.0
"""How far a look's burden may be above what is comfortable: twice that of the longer sizes that it is held against."""


def varied(problem: Problem, profile: DeviceProfile, *, whole: bool = False) -> list[Longer]:
    """Sizes at which those that are smaller in a problem's `SMALL` than in its file have other values, in the order in which to
    look; none where it has none, or where the reference cannot be counted at full shape. whole: whether one after the other,
    the most reduced one first, has the value of the full shape."""
    small, source = small_of(problem.source), prompt_source(problem.source, name=problem.name)
    full = {name: value for name, value in counts_of(source).items() if name in small}
    now = {name: small[name] for name in full if small[name] != full[name]}
    bare = replace(problem, source=source)
    at_full = Search(bare, profile, _fits, None).need_of({}) if now else None
    if at_full is None:
        return []
    search = Search(bare, profile, _fits, None, at_full.names)
    looks: list[Longer] = []
    plain, every = plain_names(source), counts_of(source)
    leading = batch_names(source) | leading_names(source)
    if whole:
        ways = _whole_ways(sorted(now, key=lambda name: largest_of(now[name]) / largest_of(full[name])))
    else:
        ways = _ways(list(now), [name for name in every if name in leading])
    for names, change, payers in ways:
        paid = {name: map_numbers(_quartered, now.get(name, every[name]), full[name] if name in now else 0) for name in payers}
        other = {name: map_numbers(change, now[name], full[name]) for name in names}
        sizes = small | paid | other
        if any(other[name] == now[name] for name in names) or _meet(every, small, sizes):
            continue
        if outside(full, small, sizes, plain):
            continue
        found = search.need_of(sizes)
        if found is not None and search.fits(found) and search.runs(sizes, found):
            looks.append(Longer(with_small(source, sizes), sizes, None))
    return looks


Way = tuple[list[str], Callable[[int, int], int], list[str]]
"""The names of sizes that have another value, how it is made of the value and the full one, and the names of those that pay."""


def _ways(names: list[str], batch: list[str]) -> Iterator[Way]:
    """The ways to give sizes other values. batch: the names that say one, of any size."""
    paying = [name for name in names if name in batch]
    inner = [name for name in names if name not in batch]
    whole = [name for name in batch if name not in names]
    yield names, _doubled, []
    yield names, _halved, []
    groups = {tuple(group): group for group in (inner, paying, *([name] for name in names)) if group}
    for group in groups.values():
        if set(batch).issuperset(group):
            yield group, _lessened, []
        payers = [name for name in paying if name not in group]
        if payers:
            yield group, _doubled, payers
        if group != names:
            yield group, _doubled, []
            yield group, _halved, []
        if whole:
            yield group, _doubled, payers + whole


def _whole_ways(names: list[str]) -> Iterator[Way]:
    """The ways to give one size the value of the full shape."""
    for name in names:
        others = [other for other in names if other != name]
        yield [name], _whole, []
        if others:
            yield [name], _whole, others


def _whole(number: int, full: int) -> int:
    return full


def _doubled(number: int, full: int) -> int:
    return min(2 * number, full)


def _halved(number: int, full: int) -> int:
    """A number that is as at full size stays.

    >>> _halved(16, 128), _halved(1, 128), _halved(128, 128)
    (8, 1, 128)
    """
    return number if number == full else max(1, number // 2)


def _lessened(number: int, full: int) -> int:
    """A fourth less of what is not as at full size.

    >>> _lessened(16, 128), _lessened(2, 128), _lessened(128, 128)
    (12, 1, 128)
    """
    return number if number == full or number == 1 else number * 3 // 4


def _quartered(number: int, full: int) -> int:
    """A quarter of what is not as at full size; half would undo what is doubled in a product, and so stays what has no quarter.

    >>> _quartered(16, 128), _quartered(2, 128), _quartered(128, 128)
    (4, 2, 128)
    """
    return number if number == full or number % 4 else number // 4


def _meet(full: Sizes, before: Sizes, sizes: Sizes) -> bool:
    """Whether two numbers that differ at full size, and before, do not any more.

    >>> _meet({"M": 64, "N": 128}, {"M": 4, "N": 8}, {"M": 8, "N": 8}), _meet({"M": 64, "N": 64}, {}, {"M": 8, "N": 8})
    (True, False)
    """
    triples = [
        triple
        for name, value in full.items()
        for triple in zip(
            numbers_of(value), numbers_of(before.get(name, value)), numbers_of(sizes.get(name, value)), strict=False
        )
    ]
    apart = {(one[2], other[2]) for one in triples for other in triples if one[0] != other[0] and one[1] != other[1]}
    return any(one == other for one, other in apart)


def _fits(found: Need) -> bool:
    return burden_of(found) <= MOST_BURDEN
