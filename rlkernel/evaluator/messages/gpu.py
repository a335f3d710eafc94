"""Between the pool and a GPU's runner, which is trusted. What a runner reports of a candidate is a fact, never a claim of its.

Hello -> Card             MeasureRates -> Rates             Study -> Known, Unstressed or Broken
TimeCompiled -> CompiledTimes or NotCompiled             Evaluate -> Judged or Failed             any of them -> Failed
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlkernel.evaluator.messages.children import Choice, Facts, Kernel, Step, StepTime
from rlkernel.evaluator.messages.endings import Ending
from rlkernel.evaluator.messages.judgement import NONE_SHOWN, NOWHERE, Balance, InputFate, Places, Shown, Stress, Tolerance
from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.wire import Span
from rlkernel.types import TIMING_WIDTH, Closeness, Precision


@dataclass(frozen=True, slots=True)
class Hello:
    """Pool to runner: the first question, which starts it."""

    memory_bytes: int
    """GPU memory that torch may take."""
    first: bool
    """Whether it is the first runner on this GPU, which also warms up what only studies use."""


@dataclass(frozen=True, slots=True)
class Card:
    """Runner to pool: it is ready on this GPU."""

    name: str
    processors: int


@dataclass(frozen=True, slots=True)
class MeasureRates:
    """Pool to runner: measure the card itself."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Runner to pool: what the card does, which a profile of it is made of."""

    dram_bytes_per_us: float
    """The rate of a copy, in bytes read and written."""
    launch_us: float
    """From the start of one short kernel to the start of the next one."""
    l2_bytes: int
    shared_bytes: int
    """The shared memory that one block may use."""
    processors: int


@dataclass(frozen=True, slots=True)
class Study:
    """Pool to runner: measure what is needed of a problem, once."""

    name: str
    source: str
    reference: Any
    """The reference's Program at full size, as JSON."""
    precision: Precision
    stress: bool
    """Whether to try scaled inputs, which may cost the runner."""
    shown: bool
    """Whether to try inputs that show what no draw does, which may cost it, too."""
    replaced: tuple[str, ...] = ()
    """Attributes that the reference's forward replaces for its next call."""


@dataclass(frozen=True, slots=True)
class Known:
    """Runner to pool, and to every runner from there: what is measured once for a problem."""

    allowed: dict[str, tuple[Tolerance, ...]]
    """Kind of round -> what is allowed of each output: "plain", "perturbed", "stress", "other", "range", "outliers", "mild" and
    "mild varied" where there are such rounds, what is `shown` by its text, and "timed", which allows besides for what cuDNN's
    tf32 makes of the reference."""
    stress: Stress
    """What may be done to the inputs."""
    balance: Balance | None
    """What leads operands out of half precision's range; None where there is no such round."""
    perturbs: bool
    """Whether constant parameters may have other values."""
    fates: tuple[InputFate, ...]
    """What the reference does to each tensor among its arguments."""
    changes_state: tuple[str, ...]
    """Parameters and buffers that the reference changes."""
    reads: bool
    """Whether the reference's host reads values of the GPU, so that each timed call is given what one before it has read."""
    gaps: bool
    """The reference makes the host wait for the GPU all the same, so that its time holds gaps, always."""
    plain: bool
    """Whether the reference's outputs are finite and none is huge, so that one pass over a timed output tells whether it
    matches."""
    rows: tuple[StepTime, ...]
    """Device time of the reference's operators."""
    of_state: dict[str, dict[str, Tolerance]] = field(default_factory=dict)
    """Kind of round -> what the reference's own error allows of the state that it changes."""
    blurred: bool = False
    """Whether tf32 makes more of an output than it may, so that operators run without it in the rounds that are judged."""
    host_us: float = 0.0
    """How long our host takes to enqueue a call of the reference."""
    draw_seconds: float = 0.0
    """How long our host takes to draw inputs from a seed that is new."""
    plants: bool = False
    """Whether the reference has nothing to do unless numbers of forward's arguments are among its inputs."""
    places: Places = NOWHERE
    """What is done to single inputs under `stress`."""
    shown: Shown = NONE_SHOWN
    """What is done to inputs in rounds of their own."""
    outliers: bool = False
    """Whether there is a round in which a few weights are far larger than the others."""
    mild: tuple[Stress, ...] = ()
    """What is done to the inputs of rounds at other constants whose inputs are as large as they are drawn, because the hardest
    one hides a constant, or may hide what becomes of inputs that never vary."""
    hurried: bool = False
    """Whether time was short for the rounds that show what no draw does, as it is beside other work, so that some may lack."""

    @property
    def keeps_inputs(self) -> bool:
        """Whether the reference leaves all its arguments as they are."""
        return all(fate is InputFate.KEPT for fate in self.fates)


@dataclass(frozen=True, slots=True)
class Unstressed(Ending):
    """Runner to pool: inputs that no author draws have cost the runner; the problem is studied again with fewer."""


@dataclass(frozen=True, slots=True)
class TimeCompiled:
    """Pool to a runner of its own: how long does the reference take under torch.compile?"""

    name: str
    source: str
    precision: Precision


@dataclass(frozen=True, slots=True)
class CompiledTimes:
    """Runner to pool: device times of the reference, microseconds."""

    compiled_us: float
    eager_us: float


@dataclass(frozen=True, slots=True)
class NotCompiled:
    """Runner to pool: torch.compile does not compile the reference."""

    why: str


@dataclass(frozen=True, slots=True)
class Tables:
    """Facts about a candidate's binaries."""

    program: Facts
    other: Facts
    """The facts for the other of train and eval mode, where the candidate does other work there."""


@dataclass(frozen=True, slots=True)
class Task:
    """A candidate that is to be judged on a GPU, whichever it is."""

    name: str
    source: str
    """The problem's."""
    modal: bool
    """Whether the reference's forward differs between train and eval mode."""
    precision: Precision
    seconds: float
    """Wall clock that any one forward may take."""
    program: Program
    other: Program | None
    """The candidate in the other of train and eval mode, where it does other work there."""
    kernels: Tables
    replaced: tuple[str, ...] = ()
    """Attributes that the reference's forward replaces for its next call."""
    timing_width: float = TIMING_WIDTH
    """Half of the speedup's 95 % interval, relative, at which trials stop."""
    live: dict[Kernel, bool] = field(default_factory=dict)
    """What runners that were lost have found out: function -> whether its launches are live."""
    losses: int = 0
    """How many runners were lost because forward fails without the launches of a function."""
    spins: int = 0
    """How many of these because it never ends."""


@dataclass(frozen=True, slots=True)
class Needed(Ending):
    """Runner to pool: forward without the launches of this function fails, and the process is lost by it."""

    function: int
    live: dict[Kernel, bool]
    """What was found out before: function -> whether its launches are live."""
    spun: bool
    """Whether it never ends without them."""


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Pool to runner: judge and time this candidate."""

    task: Task
    known: Known
    cubins: dict[str, Span]
    """Key of the facts -> where the binary lies in the body."""


@dataclass(frozen=True, slots=True)
class Speedup:
    """Ratio of the typical times, reference over candidate, with its 95 % interval. Times in microseconds."""

    value: float
    low: float
    high: float
    reference_us: float
    reference_low_us: float
    reference_high_us: float
    candidate_us: float
    trials: int

    @property
    def half_width(self) -> float:
        """Half of the interval's width, relative to the ratio."""
        return self.high / self.value - 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """The times of a candidate whose every output matched."""

    speedup: Speedup
    host_us: float
    """Time to enqueue one forward."""
    rows: tuple[StepTime, ...]
    """Device time of the candidate's steps."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Runner to pool: a whole stay."""

    matches: bool
    detail: str
    """What is wrong with the first output that does not match."""
    other_mode: bool
    """Whether it was wrong in the other of train and eval mode alone."""
    error: float
    """The largest norm-relative error of an output; may be infinite."""
    choices: dict[Step, Choice]
    """Launch -> the configuration that was chosen."""
    live: dict[Kernel, bool]
    """Kernel -> whether skipping its launches changes the output."""
    measured: Measured | None
    """None if an output did not match."""
    close: Closeness | None
    """How KernelBench would compare an output at the problem's own inputs; None where none could be had."""
