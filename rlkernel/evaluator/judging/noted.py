"""What is noted of one candidate while it is judged without a GPU, for a person who is told more than the verdict."""

from __future__ import annotations

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
