"""What a person is told beside a verdict without a GPU: of the problem, that it can be solved without the work, or that no card
holds it; of the candidate, what nobody has looked at, and what would decide it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rlkernel.evaluator import wire
from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.noted import Open
from rlkernel.evaluator.judging.sizes.enough import likely_long_enough, long_enough, strangers
from rlkernel.evaluator.judging.sizes.resizing import Sizes
from rlkernel.evaluator.judging.undecided import MOST_SIZES, Undecided, compared_at
from rlkernel.evaluator.messages.survey import Survey
from rlkernel.evaluator.program.variant import Specs, Variant
from rlkernel.evaluator.second_looks.budget import OF_A_SECOND
from rlkernel.types import Problem

MOST_BYTES = 1 << 27
"""How much a round's inputs may take at sizes that are named to a person: a child is sent no more than a few times that."""

UNKNOWN = {
    Undecided.LONGER: "it is not right at the sizes that were chosen first",
    Undecided.WORK: "it is not right at the sizes that were chosen first",
    Undecided.OWN: "the sizes that it is made for are not known",
    Undecided.TIME: "it did not end at the least sizes that were tried",
}
"""Why no `SMALL` is known for a candidate that was not right at the first sizes."""


@dataclass(frozen=True, slots=True)
class _Longer:
    """Sizes at which a candidate could be judged, and what that takes: seconds of its kernels, and bytes of its arguments."""

    sizes: Sizes
    seconds: float
    bytes: float


def degenerate(name: str, found: Survey) -> list[str]:
    """The line about a reference that constants or kernels that ignore their inputs could match; none for a sound one."""
    if not found.degenerate:
        return []
    return [f"{name}: {found.degenerate}; a verdict on such a reference says little, and a training set leaves it out"]


def too_large(name: str, full: Variant, profile: DeviceProfile) -> list[str]:
    """The line about arguments that the modelled card could not hold; none for those that fit."""
    taken = _bytes(full.specs)
    if taken <= profile.memory_bytes:
        return []
    most = f"the card ({profile.name}) has {profile.memory_bytes / 1e9:,.0f} GB"
    return [f"{name}: its arguments take {taken / 1e9:,.0f} GB at full shape, and {most}: make its sizes smaller"]


def _bytes(specs: Specs) -> int:
    """What all arguments take."""
    return sum(math.prod(spec.shape) * wire.DTYPES[spec.dtype].itemsize for spec in (*specs.init_inputs, *specs.inputs))


def untried(configurations: Mapping[str, int]) -> list[str]:
    """The lines about autotuned kernels, of which one configuration alone was run.

    >>> untried({"scaled": 3})
    ['scaled: one of its 3 configurations was run, the first by modelled time that compiles; a GPU judges all']
    """
    said = "configurations was run, the first by modelled time that compiles; a GPU judges all"
    return [f"{name}: one of its {count} {said}" for name, count in configurations.items()]


def to_decide(problem: Problem, why: Undecided, found: Open | None, full: Specs, run_seconds: int) -> list[str]:
    """The line about a verdict that leaves sizes open: a `SMALL` to paste at which they would be judged, or why none is known.
    found: None where the candidate was not right at the first sizes. full: its arguments at full shape."""
    none = f"{problem.name}: no SMALL is known that decides this"
    if found is None:
        return [f"{none}: {UNKNOWN[why]}"]
    if strange := strangers(problem.source, found.compared):
        told = ", ".join(name.removeprefix("SIZE_") for name in strange[:MOST_SIZES])
        return [f"{none}: it names constants at the top of the file, where these sizes are not: {told}"]
    certain, likely = (
        _Longer(sizes, found.work / divided / OF_A_SECOND, _bytes(full) / divided)
        for sizes, divided in (
            choose(problem.source, found.compared, found.halvings) for choose in (long_enough, likely_long_enough)
        )
    )
    for longer, how in ((certain, "has it"), (likely, "is likely to have it")):
        if longer.sizes != found.compared and longer.seconds <= run_seconds and longer.bytes <= MOST_BYTES:
            line = (
                f"this line in the file {how} judged where it is long enough, in {longer.seconds:.0f} s: SMALL = {longer.sizes}"
            )
            return [f"{problem.name}: {line}"]
    if certain.sizes == found.compared:
        return [f"{none}: it was judged where it should be long enough"]
    work, memory = (
        f"its kernels would run for some {certain.seconds / 60:,.0f} min",
        f"its arguments take {certain.bytes / 1e9:.1f} GB",
    )
    return [f"{none} here: at {compared_at(certain.sizes)} {work if certain.seconds > run_seconds else memory}"]
