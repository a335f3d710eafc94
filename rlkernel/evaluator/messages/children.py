"""Between the pool and the children that see a candidate: tracer, compiler and CPU runner. What these say is untrusted.

TraceRequest -> Traces or Asked     CompileRequest -> Binaries     PriceRequest -> Prices     RunRequest -> Ran
any of them -> Failed
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from rlkernel.evaluator.compile.binaries import Compiled
from rlkernel.evaluator.devices import Room
from rlkernel.evaluator.messages.codec import ONCE, Between
from rlkernel.evaluator.messages.judgement import NOTHING, KnownInput, Reads, Unread
from rlkernel.evaluator.program.compiled_ahead import KernelFacts
from rlkernel.evaluator.program.first_call import Touched
from rlkernel.evaluator.program.schema import MAX_KERNELS, MAX_STEPS, Program
from rlkernel.evaluator.program.variant import Kept, Specs, Traced, Variant
from rlkernel.evaluator.wire import Span, TensorSpan
from rlkernel.types import Precision

Step = Annotated[int, Between(0, MAX_STEPS - 1)]
"""A step's place in `Program.forward`."""
Kernel = Annotated[int, Between(0, MAX_KERNELS - 1)]
"""A kernel's place in `Program.functions`."""
Choice = Annotated[int, Between(0, 255)]
"""A configuration's place in `Launch.configs`."""
Facts = Annotated[dict[str, dict[Choice, Compiled]], ONCE]
"""Step ("3" in forward, "init:0" in `Program.once`) -> configuration -> facts about the binary, of which a hundred thousand
launches may have the same."""
Amount = Annotated[float, Between(0.0, 1e24)]
"""A number of operations or of elements, or a share of one."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Device time of one step of a Program that does work. Raises ValueError unless it is a launch or an operator."""

    step: Step
    us: Annotated[float, Between(0.0, 1e15)]
    """Microseconds."""
    function: Kernel | None = None
    """The kernel that a launch runs."""
    op: Annotated[str, Between(1, 200)] | None = None
    """The operator that the step calls, e.g. `aten.add.Tensor`."""
    operations: Amount = 0.0
    """The operations that the step takes, where its time is modelled."""
    of_products: Amount = 0.0
    """Those of them that may be operations of products."""

    def __post_init__(self) -> None:
        if (self.function is None) == (self.op is None):
            raise ValueError("a step is either a launch or an operator")


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """Pool to tracer: the candidate's text, and the sizes at which it is traced."""

    source: str
    profile: str
    """What `devices.profile_of` reads."""
    variants: tuple[Variant, ...]
    known: tuple[KernelFacts, ...] = ()
    """What is known of the kernels that earlier traces have asked for."""
    timed: Kept | None = None
    """What is kept at the size that is timed, where that was traced before; None where it is the last of `variants`."""


@dataclass(frozen=True, slots=True)
class Traces:
    """Tracer to pool: what the candidate does at each size."""

    traces: tuple[Traced, ...]
    timed: Kept
    """What is kept at the size that is timed: a later trace of other sizes is given this."""


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """Pool to compiler: a Program whose launches are compiled."""

    program: Program
    specs: Specs
    profile: str
    """What `devices.profile_of` reads."""
    configs: dict[Step, tuple[Choice, ...]] | None
    """Forward step -> its configurations in the order in which to try them, as they come by default; the first that compiles is
    taken. None: all configurations that work."""
    directory: str
    """Where binaries are kept; the compiler reads there."""
    scratch: str
    """Where the compiler may write."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """Compiler to pool: facts about the binaries; those that were not kept yet are in the body."""

    kernels: Facts
    cubins: dict[str, Span]
    """Key of the facts -> where the binary lies in the body."""


@dataclass(frozen=True, slots=True)
class RoundInputs:
    """What one round gives to a candidate, with its tensors in the body."""

    init_seed: int
    forward_seed: int
    other: bool
    """Whether the round is one in the other of train and eval mode."""
    again: bool
    """Whether the module of the round before is called once more."""
    watched: tuple[str, ...]
    """Parameters and buffers whose values after the call are asked for."""
    init_inputs: tuple[TensorSpan, ...]
    """The tensors among the constructor's arguments."""
    state: dict[str, TensorSpan]
    """The reference's parameters and buffers."""
    inputs: tuple[TensorSpan, ...]
    first_inputs: tuple[TensorSpan, ...]
    """Inputs of the calls that prepare the module; none where it is not called before."""


@dataclass(frozen=True, slots=True, order=True)
class Extent:
    """What repeats in a kernel at full size."""

    function: Kernel
    """The kernel, or a function that it calls."""
    place: Annotated[int, Between(0, 1 << 19)]
    """0, 1 and 2: the axes of its grid; from 3 on, its loops in the order of their ends; the rest: `cpu.extents`."""
    count: Annotated[int, Between(2, 1 << 62)] = field(compare=False)
    """How many turns, or programs, there are."""
    enough: Annotated[int, Between(2, 1 << 62)] = field(compare=False)
    """How many of them show how it goes on."""


@dataclass(frozen=True, slots=True)
class Held:
    """A comparison of a kernel that numbers of the full size may decide otherwise than all of the first sizes."""

    function: Kernel
    """The kernel, or a function that it calls."""
    number: Annotated[int, Between(0, 1 << 31)]
    """Which of its comparisons it is."""
    sides: Annotated[int, Between(1, 3)]
    """Which of its sides may be another number, see `cpu.limits.Place`."""
    kind: Annotated[str, Between(1, 10)]
    """How it tells numbers apart."""
    left: tuple[float, float]
    """The least and the largest of the numbers on a side, at full size."""
    right: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Priced:
    """What a Program costs at full size, and what was seen of it there."""

    rows: tuple[StepTime, ...]
    """The modelled time of each step that works."""
    unwritten: bool
    """The launches write less than nearly all of an output that only they write."""
    idle: dict[Kernel, Annotated[int, Between(0, 10**7)]]
    """Kernel of which no program was found that writes -> the line of its launch."""
    repeated: tuple[Extent, ...]
    """What has several turns, or programs."""
    unread: Unread = Unread.NOTHING
    """What is never read in part of what the reference needs to the last element or kernels write, and is read whole at the size
    at which results are compared."""
    left_out: tuple[Kernel, ...] = ()
    """The kernels whose masks leave elements out."""
    told: bool = False
    """Whether a loop ends where a whole number of the inputs says."""
    efforts: dict[Kernel, tuple[Amount, Amount, Amount, Amount]] = field(default_factory=dict)
    """Kernel -> its operations, and the elements of the blocks that it stores, of those that it stores whatever memory holds, and
    of those that it loads."""
    held: tuple[Held, ...] = ()
    """The comparisons with a fixed number that were not made where results are compared, or with nothing above zero."""
    by_chance: bool = False
    """Chance decides whether too little of an output is seen to be written: few programs were followed, and these differ."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Pool to CPU runner: a Program at both sizes, and rounds at the small one."""

    program: Program
    """The candidate at the small size."""
    other: Program | None
    """The same in the other of train and eval mode, where it does other work there."""
    full: Program
    """The candidate at full size, whose time is modelled."""
    full_specs: Specs
    profile: str
    """What `devices.profile_of` reads."""
    precision: Precision
    """How fast torch's own products and convolutions are."""
    rounds: tuple[RoundInputs, ...]
    key: str
    """What the programs that are followed, and undefined values, are drawn from."""
    configs: dict[str, Choice]
    """Launch at full size, "3" in forward or "init:0" in `Program.once` -> the configuration that was compiled."""
    most_work: float | None
    """The work of all rounds, see `cpu.pace`, above which the answer is `TooLarge`; None: no limit."""
    priced: Priced | None = None
    """What the candidate costs at full size, where an earlier answer has said so."""
    written: tuple[float, ...] = ()
    """The bytes that the reference writes of each output, at full size."""
    reads: Reads = NOTHING
    """What the reference needs to the last element, at full size."""
    before: int = 0
    """How many rounds came before in other requests; the first of all is also run without each kernel."""
    rooms: dict[str, Room] = field(default_factory=dict)
    """Launch at full size, as in `configs` -> what its binary takes of a processor."""
    touched: dict[str, Touched] = field(default_factory=dict)
    """Launch at full size, as in `configs` -> the parameters that its binary may store to and load from."""
    hides: bool = False
    """Whether the reference tells places apart at full size alone, so that a candidate may, too."""
    known: tuple[KnownInput, ...] = ()
    """The whole numbers that forward is given at full size, as far as they are known."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """CPU runner to pool: the interpreter would take too long at this size."""


@dataclass(frozen=True, slots=True)
class PriceRequest:
    """Pool to CPU runner: which configurations of autotuned launches are fast?"""

    full: Program
    full_specs: Specs
    profile: str
    """What `devices.profile_of` reads."""
    key: str
    """What the programs that are followed are drawn from."""
    known: tuple[KnownInput, ...] = ()
    """The whole numbers that forward is given at full size, as far as they are known."""


@dataclass(frozen=True, slots=True)
class Prices:
    """CPU runner to pool: forward step -> its configurations from the fastest to the slowest, by modelled time."""

    orders: dict[Step, tuple[Choice, ...]]


@dataclass(frozen=True, slots=True)
class RoundOutputs:
    """What one round gave, with its tensors in the body."""

    structure: Any
    """What forward returned, with {"tensor": place} for tensors (`program.tensors.flatten`), as JSON."""
    tensors: tuple[TensorSpan, ...]
    overlapping: tuple[bool, ...]
    """Whether elements of an output share memory."""
    lent: tuple[bool, ...]
    """Whether an output lies in the memory of an input."""
    inputs: tuple[TensorSpan, ...]
    """The inputs after the call."""
    state: dict[str, TensorSpan]
    """The watched parameters and buffers after the call, as far as the candidate has them."""


@dataclass(frozen=True, slots=True)
class Ran:
    """CPU runner to pool: outputs of every round of a request, and what the Program costs at full size."""

    rounds: tuple[RoundOutputs, ...]
    priced: Priced | None
    """What the Program costs at full size; None where the request has told it."""
    live: dict[Kernel, bool]
    """Kernel of the small Program -> whether skipping its launches changes the output of the first round of all."""
    short: tuple[Extent, ...]
    """What has too few turns, or programs, in all rounds of the request to show how it goes on, and more at full size."""
    unfilled: bool = False
    """Whether the blocks of a kernel are not filled in these rounds that are filled at full size."""
    work: Annotated[int, Between(0, 1 << 53)] = 0
    """What all rounds take, by the first of all, see `cpu.pace`; 0 where that was in another request."""
    limited: bool = False
    """Whether fixed numbers decide at full size alone, and the first round gives something else where they decide here, too."""
    tunes: bool = False
    """Whether the first round gives something else where autotuners have run before it on the same tensors."""
    effort: Amount = 1.0
    """The share of what kernels compute in the first round for the elements that they store which they compute at full size."""
