"""Longer sizes for a second look: those at which a loop has several turns that has one where results are compared first.

Some of the constants that were reduced are as large as in the problem's file, or that halved until it fits; the others are as
they were, or smaller where that is the price. Which of them are long, in this order:

1. those that say no batch, together: 8192 columns of few rows;
2. each alone, the most reduced one first: a product's inner extent.

Halving what is at full size keeps its divisors, so that a kernel without masks stays right. Example: `rows, columns = 4096, 8192`
that are compared at 512 and 256 are looked at again at 128 and 8192.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import rshift
from typing import Any

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.needs import Need
from rlkernel.evaluator.judging.sizes.resizing import Sizes, batch_names, largest_of, sizes_of, with_small
from rlkernel.evaluator.judging.sizes.size_search import Search, burden_of
from rlkernel.evaluator.messages.oracle import Lighter, Longer
from rlkernel.reference_text import prompt_source, small_of
from rlkernel.types import Problem

MOST_BURDEN = 4.0
"""How far a second look's burden may be above what is comfortable. Its work is bounded besides, see `cpu.pace`."""
SHRINKS = (1, 2, 4, 8, 16, 32, 64)
"""By what the other constants may be divided."""
LIGHTER = 8
"""By what they are divided once more for a candidate that takes the interpreter too long."""
FEWEST = 4
"""What is left of them there, where there are so many: of two rows, one of another length may be left out unseen."""
HALVINGS = 12
"""How often what is long may be halved."""


def lengthened(problem: Problem, profile: DeviceProfile, halvings: int = 0) -> list[Longer]:
    """The longer sizes for a problem whose `SMALL` is where results are compared first; none where it has none, or where
    the reference cannot be counted at full shape. `halvings`: how often at least what is long is halved."""
    small, source = small_of(problem.source), prompt_source(problem.source, name=problem.name)
    full = {name: value for name, value in sizes_of(source).items() if name in small and _alike(value, small[name])}
    reduced = {name: value for name, value in full.items() if largest_of(value) > largest_of(small[name])}
    if not reduced:
        return []
    bare = replace(problem, source=source)
    whole = Search(bare, profile, _fits, None).need_of({})
    if whole is None:
        return []
    found: list[Longer] = []
    for family in _families(reduced, small, batch_names(source)):
        search = Search(bare, profile, _fits, None, whole.names)
        sizes = _longest(search, small, {name: reduced[name] for name in family}, halvings)
        if sizes is None or sizes in [one.sizes for one in found]:
            continue
        others = {name: small[name] if name in family else value for name, value in sizes.items()}
        beside = None if others == small else with_small(source, others)
        lighter = _lighter(Search(bare, profile, _fits, None, whole.names), sizes, family)
        found.append(Longer(with_small(source, sizes), sizes, beside, lighter))
    return found


def _lighter(search: Search, sizes: Sizes, family: list[str]) -> Lighter | None:
    """The look with all that is not long in it divided once more, where the reference runs so, and its batch, too."""
    every = sizes_of(search.problem.source)
    batch = {name: every[name] for name in batch_names(search.problem.source) if name in every}
    fewer = {name: value if name in family else _map(_made_lighter, value, LIGHTER) for name, value in (batch | sizes).items()}
    found = search.need_of(fewer) if fewer != sizes else None
    if found is None or not search.runs(fewer, found):
        return None
    return Lighter(with_small(search.problem.source, fewer), fewer)


def _fits(found: Need) -> bool:
    return burden_of(found) <= MOST_BURDEN


def _families(reduced: Sizes, small: Sizes, batch: set[str]) -> Iterator[list[str]]:
    """The names of the constants that are long together."""
    many = [name for name in reduced if name not in batch]
    if many:
        yield many
    for name in sorted(reduced, key=lambda name: -largest_of(reduced[name]) / largest_of(small[name])):
        if [name] != many:
            yield [name]


def _longest(search: Search, small: Sizes, long: Sizes, halvings: int) -> Sizes | None:
    """The largest sizes that fit; None if none does that is larger than `small`."""
    others = [name for name in sizes_of(search.problem.source) if name in small and name not in long]
    for halving in range(halvings, HALVINGS):
        now = {name: _map(max, _map(rshift, value, halving), small[name]) for name, value in long.items()}
        if all(value == small[name] for name, value in now.items()):
            return None
        tried: list[Sizes] = []
        for shrink in SHRINKS:
            fewer = {name: _map(_divided, small[name], shrink) for name in others}
            sizes = small | fewer | now
            if sizes in tried:
                break
            tried.append(sizes)
            found = search.need_of(sizes)
            if found is not None and search.fits(found) and search.runs(sizes, found):
                return sizes
    return None


def _divided(number: int, by: int) -> int:
    return max(number // by, min(number, 2))


def _made_lighter(number: int, by: int) -> int:
    return max(number // by, min(number, FEWEST))


def _map(function: Any, value: Any, other: Any) -> Any:
    """A function of a size's numbers, each with that of another size in its place, or with one number."""
    if isinstance(value, (tuple, list)):
        others = other if isinstance(other, (tuple, list)) else [other] * len(value)
        return type(value)(_map(function, a, b) for a, b in zip(value, others, strict=True))
    return function(value, other)


def _alike(value: Any, other: Any) -> bool:
    """Whether two sizes have as many numbers."""
    if isinstance(value, (tuple, list)):
        return isinstance(other, (tuple, list)) and len(value) == len(other) and all(map(_alike, value, other))
    return type(value) is type(other) is int
