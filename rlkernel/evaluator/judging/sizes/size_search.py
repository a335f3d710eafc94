"""The search for sizes of a problem's constants under which its reference runs and needs no more than it may."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.needs import Need, TooLarge, TooManyElements, TooMuchMemory, need
from rlkernel.evaluator.judging.references.ending import FEWEST_AT_OTHER_SIZES, Usual
from rlkernel.evaluator.judging.references.reference_calls import call
from rlkernel.evaluator.judging.sizes.constants import counts_of, resize, sizes_of
from rlkernel.evaluator.judging.sizes.made_inputs import batch_names, free_names, least_beside
from rlkernel.evaluator.judging.sizes.resizing import Sizes, apart, divided, doubled, largest_of, reduced, twos
from rlkernel.evaluator.trace.host_numbers import UnknownValue
from rlkernel.reference import describe, load_reference
from rlkernel.types import Problem

LIMITS = tuple(1 << power for power in range(20, -1, -1))
TELLING = 4
"""The limit below which sizes say little: where all of them are 1, hardly anything can be wrong."""
FACTORS = tuple(1 << power for power in range(1, 13))
INTERPRETED_ELEMENTS = 1 << 19
"""How many elements the inputs and all results of one forward's operators may have: what the interpreter does in a few
seconds."""
INTERPRETED_FLOPS = 1 << 28
INTERPRETED_WEIGHTS = 1 << 23
"""How many elements the weights may have, which are sent to the child that runs a candidate, once per module."""
EXTENTS = (8, 16, 32, 48, 64, 96, 128)
MORE_ELEMENTS = 1.5
"""How many times the elements there may be where sizes that were equal become unequal. Products take the time, not elements."""
TRIES = 20
"""How many sizes the last search looks at."""


@dataclass
class Search:
    """Looks for sizes of `problem` under which `fits` holds. A reference that makes more than `most` elements is stopped."""

    problem: Problem
    profile: DeviceProfile
    fits: Callable[[Need], bool]
    most: int | None
    names: frozenset[str] | None = None
    """The operators at full shape, of which none may be missing or new, and under which sizes must be seen to run on data: an
    index may be out of range that has no value without. None where it is the full shape that is looked for."""
    usable: bool = True
    """Whether the file itself, at its own sizes, has run or was stopped."""
    last: Need | None = None
    """What the sizes that were looked at last need."""
    least: tuple[Sizes, Need] | None = None
    """The sizes that needed least, of those under which the reference ran."""
    reason: str = ""
    stopped: bool = False
    """Whether the reference was stopped at the sizes that were looked at last, or they had been looked at before."""
    crowded: bool = False
    """Whether it was stopped because of the elements that it makes."""
    _tried: list[Sizes] = field(default_factory=list)
    _usual: Usual = field(default_factory=lambda: Usual(FEWEST_AT_OTHER_SIZES))

    @property
    def why(self) -> str:
        """Why nothing fits, in one line."""
        if self.least is None:
            return self.reason
        found = self.least[1]
        many = f"{found.inputs + found.made:,} elements, {found.weights:,} weights and {found.flops:,} flops are too many"
        return f"{self.problem.name}: no size fits; of the least that was tried, {many}"

    def run(self, families: Sequence[Sizes]) -> Sizes | None:
        """The reduced constants, none where nothing needs to be reduced; None if nothing fits."""
        disordered: Sizes | None = None
        for sizes in self._candidates(families):
            found = self.need_of(sizes)
            if found is not None and self._fits(sizes, found):
                chosen = self._apart(sizes)
                if (ordered := self._in_order(chosen)) is not None:
                    return ordered
                disordered = disordered or chosen
            if not sizes and found is None and not self.stopped:
                self.usable = False
                return None
        return disordered

    def _candidates(self, families: Sequence[Sizes]) -> Iterator[Sizes]:
        yield {}
        if self.names is None and self.stopped:  # too many operators
            every = sorted(families[-1].items(), key=lambda item: -largest_of(item[1]))
            yield from (reduced({name: value}, limit) for name, value in every for limit in LIMITS)
        for family in families:
            yield from (reduced(family, limit) for limit in (1 << 62, *LIMITS) if limit >= TELLING)
        counts = counts_of(self.problem.source)
        yield from (divided(counts, factor) for factor in FACTORS)
        for family in families:
            yield from (reduced(family, limit) for limit in LIMITS if limit < TELLING)

    def need_of(self, sizes: Sizes) -> Need | None:
        """What the reference needs under these sizes; None where it does not run, or was tried before."""
        self.stopped = self.crowded = False
        if sizes in self._tried:
            self.stopped = True
            return None
        self._tried.append(sizes)
        name = self.problem.name
        try:
            source = resize(self.problem.source, sizes, name=name) if sizes else self.problem.source
            with self._bounded(sizes):
                found = need(source, name, self.profile, self.most)
        except BrokenReference as error:
            self._say(str(error), sizes)
            return None
        except TooLarge as error:
            self.stopped, self.crowded = True, isinstance(error, TooManyElements)
            self.reason = f"{name}: no size fits; of the least that was tried, {error}"
            return None
        except Exception as error:  # the file's own code, which may refuse a size
            self._say(f"{name}: {_told(error, name)}", sizes)
            return None
        if self._broadcasts(sizes):
            self._say(f"{name}: no size fits; at the smallest ones an axis of 1 stands in for a longer one", sizes)
            return None
        self.last = found
        alike = self.names is None or found.names == self.names
        if alike and (self.least is None or burden_of(found) < burden_of(self.least[1])):
            self.least = (sizes, found)
        return found

    def _bounded(self, sizes: Sizes) -> AbstractContextManager[None]:
        """Bound the time of the reference at other sizes than its own, at which it may never end."""
        return self._usual.bounded() if sizes else self._usual.measured()

    def _broadcasts(self, sizes: Sizes) -> bool:
        """Whether the reference runs only because axes of 1 are broadcast: with 2 in their place it does not. Example: a matrix
        of 512 columns, beside 4 numbers that are repeated 128 times each."""
        larger = twos(sizes, sizes_of(self.problem.source))
        if larger == sizes:
            return False
        name = self.problem.name
        try:
            with self._bounded(larger):
                need(resize(self.problem.source, larger, name=name), name, self.profile, self.most)
        except TooLarge:
            return False
        except Exception:  # the file's own code, which refuses these sizes
            return True
        return False

    def _fits(self, sizes: Sizes, found: Need) -> bool:
        if not self.fits(found):
            return False
        return self.names is None or not sizes or self.runs(sizes, found)

    def runs(self, sizes: Sizes, found: Need) -> bool:
        """Whether the reference calls the same operators at these sizes, and runs on data."""
        if found.names != self.names:
            self.reason = f"{self.problem.name}: no size fits; at smaller ones forward calls other operators"
            return False
        name = self.problem.name
        try:
            with self._bounded(sizes):
                reference = load_reference(resize(self.problem.source, sizes, name=name), small=False, name=name)
                call(reference.model(0), reference.inputs(0), 0)
        except Exception as error:  # the file's own code, which may refuse a size
            self.reason = f"{name}: forward raises {describe(error, name)} (at smaller sizes)"
            return False
        return True

    def roomier(self, small: Sizes, most: float) -> Sizes:
        """Sizes with larger extents than `small`, at which fewer windows are larger than what they are given, with a burden of up
        to `most`; `small` itself where there are none."""
        self._tried.clear()
        self.most = int(most * INTERPRETED_ELEMENTS)
        best, found = small, self.need_of(small) if small else None
        if found is None:
            return small
        cramped, source = found.cramped, self.problem.source
        names = free_names(source) - batch_names(source)
        extents = {name: value for name, value in sizes_of(source).items() if name in names and type(value) is int}
        for extent in EXTENTS if cramped else ():
            changed = small | {name: min(value, extent) for name, value in extents.items()}
            found = self.need_of(changed)
            if found is None or burden_of(found) > most:
                continue
            if found.cramped < cramped and self.runs(changed, found):
                best, cramped = changed, found.cramped
            if not cramped:
                break
        return best

    def _apart(self, sizes: Sizes) -> Sizes:
        """The same with sizes apart that differ at full shape, where the reference runs so, and then doubled as long as that is
        about as much work as before."""
        if not sizes or self.names is None or self.last is None:
            return sizes
        most = self.last.flops, MORE_ELEMENTS * (self.last.inputs + self.last.made)
        full, best, last = sizes_of(self.problem.source), sizes, self.last
        counts = (sizes.get(name, value) for name, value in counts_of(self.problem.source).items() if name not in full)
        fixed = [number for number in counts if type(number) is int]
        other = apart(sizes, full, fixed)
        while other != best and (found := self.need_of(other)) is not None and self._fits(other, found):
            if found.flops > most[0] or found.inputs + found.made > most[1]:
                break
            best, last = other, found
            other = apart(doubled(best, full), full, fixed)
        self.last = last
        return best

    def _in_order(self, sizes: Sizes) -> Sizes | None:
        """The same with each size above the numbers that stay and that it exceeds at full shape in the same place of another
        tensor; None where the reference does not run or fit so. Example: 16 heads of queries beside 4 of keys are 8, and not 2:
        kernels that have programs for the heads of queries need not be right where keys have more."""
        if self.names is None or not sizes:
            return sizes
        full, other = sizes_of(self.problem.source), dict(sizes)
        for name, least in least_beside(self.problem.source).items():
            if name in other:
                other[name] = next(value for value in _doublings(other[name], full[name]) if value > least)
        other = {name: value for name, value in other.items() if value != full.get(name)}
        if other == sizes or ((found := self.need_of(other)) is not None and self._fits(other, found)):
            return other
        return None

    @property
    def burden(self) -> float:
        """How far the least that ran is above what is comfortable."""
        return math.inf if self.least is None else burden_of(self.least[1])

    def _say(self, reason: str, sizes: Sizes) -> None:
        if not sizes or not self.reason:
            self.reason = reason

    def halve_one_by_one(self) -> Sizes | None:
        """Begin with the least that ran, or with all sizes, and halve the largest constant that may be halved. None if nothing
        fits."""
        if not self.usable:
            return None
        self.most = None  # where a reference is stopped, nobody knows whether it would have run to its end
        self._tried.clear()
        full = counts_of(self.problem.source)
        now: dict[str, Any] = full | (self.least[0] if self.least is not None else {})
        stuck: set[str] = set()
        for _ in range(TRIES):
            names = sorted((n for n in now if n not in stuck and largest_of(now[n]) > 1), key=lambda n: -largest_of(now[n]))
            if not names:
                return None
            name = names[0]
            changed = now | divided({name: now[name]}, 2)
            sizes = {n: value for n, value in changed.items() if value != full[n]}
            found = self.need_of(sizes)
            if found is not None and self._fits(sizes, found):
                return self._apart(sizes)
            if found is None:
                stuck.add(name)
            else:
                now = changed
        return None


def _doublings(number: int, whole: int) -> Iterator[int]:
    """A number, and that times two as often as it is below `whole`, which comes last."""
    while number < whole:
        yield number
        number *= 2
    yield whole


def burden_of(found: Need) -> float:
    """How far a need is above what is comfortable, as one number."""
    elements = (found.inputs + found.made) / INTERPRETED_ELEMENTS
    return elements + found.flops / INTERPRETED_FLOPS + found.weights / INTERPRETED_WEIGHTS


def _told(error: Exception, name: str) -> str:
    """What a forward on tensors without data has raised, and what to change where that is known."""
    told = f"forward raises {describe(error, name)} (on tensors without data)"
    if isinstance(error, TooMuchMemory):
        return f"{told}; make its sizes smaller"
    if isinstance(error, UnknownValue):
        return f"{told}; what a reference needs to know before it runs must follow from what get_inputs draws"
    if type(error).__module__.startswith("torch._dynamo"):
        return f"{told}; a reference is written without torch.compile, under which it can be timed besides (--compiled)"
    if isinstance(error, NotImplementedError) and 'the required "forward" function' in told:
        return f"{told}; give Model a method forward"
    if "does not require grad" in told:
        return f"{told}; forward is called under torch.no_grad(): enter torch.enable_grad() in it"
    if isinstance(error, TypeError) and "forward()" in told:
        return f"{told}; forward is given what get_inputs returns"
    return told
