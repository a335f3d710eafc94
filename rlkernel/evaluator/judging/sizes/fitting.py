"""Problems that name no `SMALL`: at which sizes they are judged, by one stated rule for everything that evaluates.

The module constants that are sizes are made smaller until the reference runs and `Need` says that it fits. In this order:

1. all of them, halved until they are below one of the limits 2^20, 2^19, ... 4;
2. those alone that `get_inputs` mentions and `get_init_inputs` does not, in the same way;
3. all of them and the numbers of groups and heads, divided by 2, 4, 8, ..., so that ratios stay; then the limits 2 and 1;
4. the same with the numbers in `get_inputs` and `get_init_inputs` as constants;
5. the smallest that has run so far, with one constant after the other halved where the reference still runs.

Where windows of convolutions or poolings are then larger than what they are given, larger extents are looked for at a batch of
two, up to `ROOMY` times the work: at one pixel, a layer shows little of what it does, and normalisation magnifies every error.

Sizes that differ at full shape then differ at the reduced one, where the reference still runs: the smaller one is halved until
they do, and then all are doubled as long as that is about as much work. Otherwise a kernel that takes rows for columns would be
right. Example: 1024 rows of 8192 are compared as 256 of 512, and not as 512 of 512.

Without a GPU a problem keeps its shape for tracing, compiling and modelled time; its results are compared at the reduced sizes,
which become its `SMALL`. Where none fits well, the smallest that was found is taken, if it can be judged at all. On a GPU
everything happens at the full shape. A problem is itself replaced by a reduced form only where its reference needs more memory
than the card has, or more operators than a trace may hold (an unrolled recurrence), by steps 1 to 5. The latter has a step before
these: one constant alone, the largest first, because kernels are often made for the others. What is left is `Unfit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.needs import Need
from rlkernel.evaluator.judging.sizes.constants import has_small, resize, sizes_of, with_small
from rlkernel.evaluator.judging.sizes.hoisting import hoisted
from rlkernel.evaluator.judging.sizes.made_inputs import free_names
from rlkernel.evaluator.judging.sizes.resizing import Sizes
from rlkernel.evaluator.judging.sizes.size_search import (
    INTERPRETED_ELEMENTS,
    INTERPRETED_FLOPS,
    INTERPRETED_WEIGHTS,
    Search,
)
from rlkernel.types import Problem

SLOW_ELEMENTS = 1 << 26
"""How many elements the inputs and all results may have where nothing smaller runs: torch's operators still end in time, a
candidate's own kernels may not."""
SLOW_FLOPS = 3 << 34
"""Operations of one forward: about two seconds of torch's on a core, also in float64."""
SLOW_WEIGHTS = 9 << 24
"""How many elements the weights may have: of one module at a time they take up to 22 bytes each beside what a process takes
anyway, so that a lane needs less than 4 GiB (see `judging.construction`)."""
SMALLER = 8
"""The factor on what the interpreter may have to do, for each step that sizes are made smaller for a slow candidate."""
ROOMY = 32.0
"""How much larger a burden may be (`burden_of`) than what is comfortable, if fewer windows are larger than their input."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A problem that can be judged, with the sizes of the constants that were reduced; none are if the file is taken as it is."""

    problem: Problem
    whole: Sizes
    """The reduced constants of the problem itself."""
    compared: Sizes
    """The reduced constants at which results are compared, on the CPU path."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """A problem that cannot be judged here, and why, in one line. Whoever scores counts and lists it."""

    problem: Problem
    reason: str


def fit_for_cpu(problem: Problem, profile: DeviceProfile, smaller: int = 0) -> Fitted | Unfit:
    """The problem with a `SMALL` by the rule, unless the file has one or is small by itself.

    smaller: how many times the elements and operations that fit are divided by SMALLER. A reference says little about how long
    the interpreter takes for a candidate; one that takes too long is compared at smaller sizes.
    """
    comfortable = partial(_comfortable, part=SMALLER**-smaller)
    fitted, whole = _fit_whole(problem, profile, lambda need: need.traceable)
    if isinstance(fitted, Unfit) or whole is None:
        return fitted
    search = Search(fitted.problem, profile, comfortable, SLOW_ELEMENTS, whole.names)
    small, other = search.run(_families(fitted.problem)), None
    if small is None and (literal := hoisted(fitted.problem.source)) != fitted.problem.source:
        other = Search(replace(fitted.problem, source=literal), profile, comfortable, SLOW_ELEMENTS, whole.names)
        small = other.run(_families(other.problem))
        if small is not None or other.burden < search.burden:
            search, other = other, None
    if small is None:
        small = search.halve_one_by_one()
    if small is None and other is not None:
        small = other.halve_one_by_one()
        search = other if small is not None or other.burden < search.burden else search
    if small is None and search.least is not None and _possible(search.least[1]):
        small = search.least[0]
    if small is None:
        return Unfit(problem, search.why)
    small = search.roomier(small, ROOMY * SMALLER**-smaller)
    source = with_small(search.problem.source, small) if small else search.problem.source
    return Fitted(replace(problem, source=source), fitted.whole, small)


def fit_for_gpu(problem: Problem, profile: DeviceProfile, memory_bytes: int) -> Fitted | Unfit:
    """The problem as it is if it is traceable and `Need.gpu_bytes` is within `memory_bytes`, otherwise reduced as a whole."""
    return _fit_whole(problem, profile, lambda need: need.traceable and need.gpu_bytes <= memory_bytes)[0]


def _comfortable(found: Need, part: float) -> bool:
    small = found.inputs + found.made <= INTERPRETED_ELEMENTS * part
    return small and found.flops <= INTERPRETED_FLOPS * part and found.weights <= INTERPRETED_WEIGHTS


def _possible(found: Need) -> bool:
    return found.inputs + found.made <= SLOW_ELEMENTS and found.flops <= SLOW_FLOPS and found.weights <= SLOW_WEIGHTS


def _fit_whole(
    problem: Problem, profile: DeviceProfile, fits: Callable[[Need], bool]
) -> tuple[Fitted, Need | None] | tuple[Unfit, None]:
    """The problem as it is judged at full shape, and what it needs there; nothing is counted where the file has its `SMALL`."""
    if has_small(problem.source):  # its author has chosen the sizes
        return Fitted(problem, {}, {}), None
    search = Search(problem, profile, fits, None)
    found = search.run(_families(problem)[::-1])
    if found is None and search.usable and (literal := hoisted(problem.source)) != problem.source:
        other = Search(replace(problem, source=literal), profile, fits, None)
        found = other.run(_families(other.problem)[::-1])
        search = search if found is None else other
    if found is None:
        found = search.halve_one_by_one()
    if found is None:
        return Unfit(problem, search.why), None
    source = resize(search.problem.source, found, name=problem.name) if found else problem.source
    return Fitted(replace(problem, source=source), found, {}), search.last


def _families(problem: Problem) -> list[Sizes]:
    """The two sets of sizes that may be reduced: all, and those of the inputs alone."""
    sizes, free = sizes_of(problem.source), free_names(problem.source)
    return [sizes, {name: value for name, value in sizes.items() if name in free}]


def describe(fitted: Sequence[Fitted | Unfit]) -> dict[str, Any]:
    """What a manifest says of the problems: which have other sizes, and which cannot be judged."""
    found = [f for f in fitted if isinstance(f, Fitted)]
    return {
        "resized": {f.problem.name: f.whole for f in found if f.whole},
        "compared_at": {f.problem.name: f.compared for f in found if f.compared},
        "unfit": {f.problem.name: f.reason for f in fitted if isinstance(f, Unfit)},
    }
