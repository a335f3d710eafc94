"""Between the pool and an oracle, the trusted child that knows references. One question, one answer:

Fit -> Fits          Lengthen or Vary -> Lengthened          Prepare -> Brief
DrawRounds or DrawMore -> Rounds          Compare -> Compared or Malformed
any of them -> Broken
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlkernel.evaluator.messages.children import RoundInputs, RoundOutputs
from rlkernel.evaluator.messages.judgement import NOTHING, KnownInput, Reads, Told
from rlkernel.evaluator.program.variant import Variant
from rlkernel.types import Closeness, OpFact, Precision


@dataclass(frozen=True, slots=True)
class About:
    """A problem, and how it is judged."""

    name: str
    source: str
    profile: str
    """What `devices.profile_of` reads."""
    precision: Precision


@dataclass(frozen=True, slots=True)
class Fit:
    """Pool to oracle: at which sizes is this problem judged, see `judging.sizes.fitting`?"""

    about: About
    memory_bytes: int | None
    """The GPU memory that there is; None where time is modelled."""
    smaller: int
    """Where time is modelled: how much smaller the sizes are at which results are compared, see `fitting.fit_for_cpu`."""


@dataclass(frozen=True, slots=True)
class Fits:
    """Oracle to pool: the problem's file as it is judged, and the constants whose values are others than in the file."""

    source: str
    sizes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Lengthen:
    """Pool to oracle: at which longer sizes may this problem, as `Fits` gives it, be judged besides?"""

    about: About
    halvings: int | None
    """How often at least a size that is long is halved; None for sizes that fill a kernel's blocks as the full ones do."""
    heads_pay: bool = False
    """Whether the number of groups or heads may be smaller for what is halved, too."""


@dataclass(frozen=True, slots=True)
class Vary:
    """Pool to oracle: at which other values of its smaller sizes may this problem be judged, see `judging.sizes.varying`?"""

    about: About
    whole: bool = False
    """Whether these are the values of the full shape, of one size after the other."""


@dataclass(frozen=True, slots=True)
class Lighter:
    """A problem's file with longer sizes as its `SMALL`, and all others smaller than they need to be."""

    source: str
    sizes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Longer:
    """A problem's file with longer sizes as its `SMALL`."""

    source: str
    sizes: dict[str, Any]
    beside: str | None
    """The same with what is long as it was at first; None where nothing else was made smaller, so that this is the first look."""
    lighter: Lighter | None = None
    """The same with what is not long smaller, for a candidate that takes the interpreter too long; None where there is none."""


@dataclass(frozen=True, slots=True)
class Lengthened:
    """Oracle to pool: the longer or other sizes, in the order in which to look."""

    looks: tuple[Longer, ...]


@dataclass(frozen=True, slots=True)
class Prepare:
    """Pool to oracle: what is there to know of this problem?"""

    about: About
    modelled: bool = True
    """Whether candidates' times are modelled; floors of these, and what goes with them, are left out otherwise."""


@dataclass(frozen=True, slots=True)
class Brief:
    """Oracle to pool: what an evaluation must know of a problem. Times in microseconds of device time, modelled."""

    variants: tuple[Variant, Variant]
    """The problem at its small and at its full size."""
    modal: bool
    """Whether the reference's forward differs between train and eval mode."""
    reference_us: float
    floor_us: float
    """No forward is faster."""
    measured_floor_us: float
    """The floor of a measured time: a launch, and writing the outputs; what fits into L2 may be written back afterwards."""
    products: float
    """Operations of the reference's matrix products, convolutions and their like, at full size."""
    least_share: float
    """The share of them that a candidate must do where they are counted."""
    reference: Any
    """The reference's Program at full size, as JSON: only a GPU's runner reads it."""
    reference_ops: tuple[OpFact, ...]
    unpriced: tuple[str, ...]
    """Operators of the reference that the model of time does not know: then no time can be modelled."""
    written: tuple[float, ...] = ()
    """The bytes that the reference writes of each output, at full size."""
    reads: Reads = NOTHING
    """What the reference needs to the last element, at full size."""
    counterparts: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Numbers of the full size, and what may stand for each at the small one, see `judging.sizes.counterparts`."""
    counts: bool = False
    """Whether its values depend on how many elements there are, see `judging.sizes.counting`."""
    distances: bool = False
    """Whether it tells places apart at full shape and not at the small one, see `judging.sizes.distances`."""
    widths: bool = False
    """Whether it adds up whole numbers that need more bits at full shape than at the small one, see `judging.sizes.widths`."""
    known: tuple[KnownInput, ...] = ()
    """The whole numbers that forward is given at full size, see `judging.costs.known`."""
    told: Told | None = None
    """What counts in place of `floor_us` and `least_share` for kernels that loop as far as these numbers say; None: the same."""


@dataclass(frozen=True, slots=True)
class DrawRounds:
    """Pool to oracle: draw the first rounds, with seeds, inputs and weights, and remember what the reference makes of them."""

    about: About
    key: str
    """What everything is drawn from, see `rlkernel.evaluator.draws`."""
    other: bool
    """Whether the candidate does other work in the other of train and eval mode."""
    calls_before: int = 0
    """How often a module of the candidate is called before it is judged."""
    other_calls_before: int = 0
    """How often more in the other of train and eval mode, before it is judged there."""
    doubted: bool = False
    """Whether the candidate is likely wrong, so that rounds of one module come first."""


@dataclass(frozen=True, slots=True)
class DrawMore:
    """Pool to oracle: draw the next rounds of what was drawn last, and remember what the reference makes of these alone."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """Oracle to pool, and to a CPU runner from there: rounds, with their tensors in the body. All of a problem come together
    unless its weights are large, or the candidate is doubted; then those of one module do."""

    rounds: tuple[RoundInputs, ...]
    more: bool
    """Whether there may be others, see `DrawMore`."""


@dataclass(frozen=True, slots=True)
class Compare:
    """Pool to oracle: do these outputs match the rounds that were drawn last? The outputs' tensors are untrusted."""

    rounds: tuple[RoundOutputs, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """Oracle to pool: whether all rounds match, or what is wrong with the first that does not."""

    matches: bool
    detail: str
    error: float
    """The largest norm-relative error of an output, as far as rounds were compared; may be infinite."""
    other: bool
    """Whether the round that does not match is one in the other of train and eval mode."""
    close: Closeness | None = None
    """How KernelBench would compare the rounds at the problem's own inputs."""
    place: str = ""
    """Where values differ, for a person: no evaluation has it, so that no policy is told."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Oracle to pool: the outputs that it was given are not outputs."""

    why: str
