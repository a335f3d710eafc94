"""What is noted of a candidate while it is judged without a GPU, for a person who is told more than the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from rlkernel.evaluator.judging.sizes.resizing import Sizes


@dataclass(frozen=True, slots=True)
class Open:
    """Of a candidate that is right at the first sizes: what is known of sizes that decide the rest, should no look do so."""

    compared: Sizes
    """The sizes at which it was right."""
    halvings: int
    """How often what is short may be halved, from the full shape on."""
    work: float
    """What there would be to do at full shape, see `cpu.pace`."""


@dataclass(slots=True)
class Noted:
    """No verdict rests on it."""

    configurations: dict[str, int] = field(default_factory=dict)
    """Kernel -> how many configurations its autotuner has, of which the first that compiled was run."""
    open: Open | None = None


_NOTED: ContextVar[Noted | None] = ContextVar("noted", default=None)


@contextmanager
def noting() -> Iterator[Noted]:
    """Inside, what is noted of the candidate that this task has judged, whatever other tasks do. One whose verdict is in the
    cache is not judged."""
    found = Noted()
    before = _NOTED.set(found)
    try:
        yield found
    finally:
        _NOTED.reset(before)


def noted() -> Noted | None:
    """Where this task notes; None where no person asks."""
    return _NOTED.get()
