"""A reference at its full shape, which looks at several sizes share: they differ in `SMALL` alone.

Tracing a loop of 7,000 steps and counting what it costs takes eight seconds of processor time, and five looks at longer sizes
took them five times. One reference is kept, because the looks of a candidate follow one another. Source: ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.references.traced_reference import TracedReference
from rlkernel.reference import Reference
from rlkernel.reference_text import SMALL, without_small


@dataclass(frozen=True, slots=True)
class _Whole:
    """What a trace at full shape rests on."""

    text: str
    """The file without `SMALL`; with it where something else in the file reads it."""
    name: str
    profile: DeviceProfile
    held: tuple[str, ...]


_kept: list[tuple[_Whole, TracedReference]] = []
"""The reference that was traced last, if any was."""


def traced_at_full_shape(
    source: str, reference: Reference, profile: DeviceProfile, held: tuple[str, ...]
) -> TracedReference:  # fmt: skip
    """A reference traced at its full shape, the one of the look before where that is the same. Raises BrokenReference,
    Untraceable and whatever the reference's own code raises."""
    text = without_small(source)
    whole = _Whole(source if SMALL in text else text, reference.name, profile, held)
    if not _kept or _kept[0][0] != whole:
        _kept[:] = [(whole, TracedReference(reference, profile, held))]
    return _kept[0][1]
