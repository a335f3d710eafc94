"""Between the pool, a referee and the process that it holds: a candidate runs as plain Python, and what it says is untrusted.

pool      NativeRequest -> NativeFound | Broken            the referee is trusted
referee   Begin -> Done     Construct -> Done     Call, HandOver -> RoundOutputs     TimeCall -> Timed     any of them -> Raised
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from rlkernel.evaluator.messages.codec import Between
from rlkernel.evaluator.messages.judgement import Places, Stress
from rlkernel.types import Closeness, Precision


class Way(StrEnum):
    """How a candidate that runs as plain Python is compared."""

    KERNELBENCH = "kernelbench"
    """Both modules are constructed from one seed, nothing is copied between them, and five draws of inputs are compared."""
    JUDGED = "judged"
    """The rounds that every evaluation has: the reference's weights are copied, constants get other values, inputs are scaled,
    and the other of train and eval mode is called, too."""


class NativeEnd(StrEnum):
    """How the candidate's process ended."""

    RAN = "ran"
    RAISED = "raised"
    """The candidate's own Python raised, or has no `ModelNew`."""
    TIMEOUT = "timeout"
    DIED = "died"
    """Its process ended, answered nonsense, or wrote more than it may."""


@dataclass(frozen=True, slots=True)
class NativeRequest:
    """Pool to referee: run this candidate, compare it, time it."""

    name: str
    source: str
    """The reference file's text."""
    code: str
    way: Way
    device: str
    """A torch device, "cpu" or "cuda"."""
    small: bool
    """Whether the problem's `SMALL` applies."""
    precision: Precision
    scratch: str
    """The one folder that the candidate may write to; it is empty."""
    alone: str
    """A file whose lock is held while either side is timed; empty where the whole device is ours anyway."""
    seconds: Annotated[float, Between(0.0, 1e6)]
    """Wall-clock seconds that the candidate's process may take."""
    memory_bytes: int
    timed: bool = True
    """Whether the reference and a candidate that ran are timed."""


@dataclass(frozen=True, slots=True)
class NativeFound:
    """Referee to pool: what became of the candidate."""

    ended: NativeEnd
    detail: str = ""
    """Why it did not run, or where its outputs differ."""
    constructed: bool = False
    """Whether a `ModelNew` was made."""
    matches: bool = False
    """Whether every output is within the bounds that an evaluation has."""
    close: Closeness = Closeness.NO
    """How KernelBench compares the outputs of the plain rounds."""
    error: float = 0.0
    """Largest error of a plain round, relative to the reference's norm."""
    inputs_changed: bool = False
    reference_us: float = 0.0
    """Median device time of the reference, microseconds, measured before the candidate's code was there."""
    candidate_us: float = 0.0
    """Median time of the candidate: what it claims, or what the referee's clock proves, whichever is more."""
    claimed_us: float = 0.0
    """Median device time by the candidate's own process, which it may have forged."""
    proved_us: float = 0.0
    """Median time that the referee's clock cannot explain by anything but the call; below 0 for short calls."""
    calls: int = 0
    """Timed calls whose outputs were compared."""

    @property
    def right(self) -> bool:
        """Whether KernelBench would count the candidate: it ran, and its outputs are like the reference's within 1e-2."""
        return self.ended is NativeEnd.RAN and self.close is not Closeness.NO

    @property
    def speedup(self) -> float | None:
        """The reference's time over the candidate's; None where it was not timed."""
        return self.reference_us / self.candidate_us if self.candidate_us > 0 else None


@dataclass(frozen=True, slots=True)
class Draw:
    """One call of forward, as seeds: both sides draw the same weights and inputs from them."""

    init_seed: int
    input_seed: int
    forward_seed: int
    again: bool = False
    """The module of the draw before is called once more."""
    stress: Stress = Stress.NONE
    perturbed: bool = False
    """Constant parameters have other values."""
    other: bool = False
    """In the other of train and eval mode."""
    places: Places = field(default_factory=Places)
    """What is done to single inputs under stress."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Referee to held process: import the candidate."""

    name: str
    source: str
    code: str
    device: str
    small: bool
    precision: Precision
    copied: bool
    """Whether the reference's weights are copied into the candidate's module."""
    scratch: str


@dataclass(frozen=True, slots=True)
class Construct:
    """Referee to held process: make the module of this draw."""

    draw: Draw


@dataclass(frozen=True, slots=True)
class Call:
    """Referee to held process: call the module, and send outputs, inputs and state after the call."""

    draw: Draw
    watched: tuple[str, ...]
    """Parameters and buffers whose values after the call are asked for."""


@dataclass(frozen=True, slots=True)
class TimeCall:
    """Referee to held process: call the module, time it, and keep what it returns."""

    draw: Draw


@dataclass(frozen=True, slots=True)
class HandOver:
    """Referee to held process: send what the last timed call has returned."""


@dataclass(frozen=True, slots=True)
class Done:
    """Held process to referee: that is done."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Held process to referee: a call was timed. The sums bind it to outputs that it has not sent yet."""

    us: Annotated[float, Between(0.0, 1e12)]
    """Device time, microseconds."""
    sums: tuple[int, ...]
    """Sum of each output's bits, modulo 2 to the 64."""


@dataclass(frozen=True, slots=True)
class Raised:
    """Held process to referee: the candidate's Python raised."""

    detail: Annotated[str, Between(0, 1000)]
