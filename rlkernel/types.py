"""The frozen values that cross the borders of rlkernel, left to right.

    Problem -> Completion -> Candidate -> Program -> Evaluation -> Turn, Trajectory -> Group -> Batch -> metrics

Nothing here imports torch, so that every process and every test can read these types cheaply. `Program` lives in
`rlkernel.evaluator.program.schema` and `Batch` in `rlkernel.training.batch`, beside the code that makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal

FILE = "reference"
"""The module's name of a reference file that is executed."""
Timing = Literal["modelled", "measured"]
Trust = Literal["traced", "native"]
"""How a verdict was found. `traced`: on a Program, so that nothing of the candidate's Python ran. `native`: on what the
candidate's Python did in a process of its own; its time is partly its own word, and who did the work is unknown."""
Split = Literal["train", "validation"]
StopReason = Literal["stop", "length", "paused"]
"""Why a completion ends: by a stop token, or by its length limit. A part of one is `paused`: it waits for new weights
(`Run.refresh_tokens`), and no turn has it."""


class Status(StrEnum):
    """What became of a candidate. Exactly one per evaluation; only `CORRECT` is a success."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    NO_CODE = "no_code"
    INVALID = "invalid"
    """No `ModelNew`, a syntax error, or a constructor that raises."""
    UNTRACEABLE = "untraceable"
    """Host code of `forward` depends on tensor values, or uses what a trace cannot record."""
    INCONSISTENT = "inconsistent"
    """`forward` does not do the same work on every call or in both modes."""
    COMPILE_ERROR = "compile_error"
    NO_KERNEL = "no_kernel"
    """No live Triton launch: torch does the work, or the kernel's result never reaches the output."""
    RUNTIME_ERROR = "runtime_error"
    OUT_OF_BOUNDS = "out_of_bounds"
    TIMEOUT = "timeout"
    CRASH = "crash"
    IMPLAUSIBLE = "implausible"
    """Faster than the roofline allows."""


class Precision(StrEnum):
    """How exact float32 products, convolutions and recurrent layers are on either side. It changes no other operator or dtype."""

    PYTORCH = "pytorch"
    """The reference runs as PyTorch ships: products exact, convolutions and recurrent layers with cuDNN's tf32. The candidate may
    use tf32 in all of them."""
    STRICT = "strict"
    """Neither side may use tf32."""
    TF32 = "tf32"
    """Both sides may use tf32 in all of them."""


TIMING_WIDTH = 0.0125
"""Half of a measured speedup's 95 % interval, as a part of the speedup, at which trials stop if nothing else is asked for."""


class Closeness(StrEnum):
    """How close outputs are by KernelBench's own rule, `torch.allclose` with one number as both tolerances."""

    TIGHT = "1e-4"
    """Within 1e-4, what KernelBench asks of float32 now."""
    LOOSE = "1e-2"
    """Within 1e-2, what it asked at first, and what it asks of half precision."""
    NO = "no"


@dataclass(frozen=True, slots=True)
class Oracle:
    """The best speedup that a search has found for a problem on one card, by one way of timing."""

    card: str
    """The card's name, e.g. `NVIDIA H200`; what is modelled names the profile."""
    timing: Timing
    speedup: float


@dataclass(frozen=True, slots=True)
class Problem:
    """One task: a PyTorch reference in KernelBench's file format (`Model`, `get_inputs`, `get_init_inputs`).

    A file may define `SMALL`, a dict of sizes to override module constants by where there is no GPU, e.g. `SMALL = {"N": 64}`.
    """

    name: str
    """The problem's name, unique in its suite, e.g. `level2/bias_gelu_scale`."""
    level: int
    split: Split
    source: str
    """The reference file's text."""
    oracles: tuple[Oracle, ...] = ()
    """The best speedups that are known, at most one per way of timing. They say how good an answer is, and change no verdict."""
    prompt: str = ""
    """The prompt that came with the problem, for the environment's style `given` and `kernelgym`; empty where none did."""


@dataclass(frozen=True, slots=True)
class LaunchFact:
    """All launches of one Triton kernel in one forward."""

    kernel: str
    calls: int
    us: float
    share: float
    """The kernel's part of the candidate's device time, 0 to 1."""
    live: bool
    """Whether its result reaches the output: skipping it changes what `forward` returns. Where the candidate is wrong and was not
    timed: whether it stores to an argument; `us` and `share` are 0 then."""
    registers: int = 0
    spills: int = 0
    shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class OpFact:
    """All calls of one ATen operator in one forward."""

    op: str
    calls: int
    us: float
    share: float


@dataclass(frozen=True, slots=True)
class Seconds:
    """Where the evaluation's wall-clock time went."""

    trace: float = 0.0
    compile: float = 0.0
    run: float = 0.0
    gpu: float = 0.0
    """Seconds for which the candidate held a GPU; part of `run`, 0 where time is modelled."""
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Facts about one candidate. A `Reward` turns them into a number; nothing here is a score."""

    status: Status
    detail: str
    """One or two short lines fit to show to the model."""
    matches: bool | None = None
    """Whether the outputs match the reference, apart from the status; None when nothing ran."""
    speedup: float | None = None
    """reference_us / candidate_us."""
    speedup_low: float | None = None
    speedup_high: float | None = None
    reference_us: float | None = None
    candidate_us: float | None = None
    timing: Timing | None = None
    trials: int | None = None
    """Timed runs of each side, where time is measured."""
    host_us: float | None = None
    """Host time to enqueue one forward of the candidate, beside the device time that is scored; None where time is modelled."""
    compiled_us: float | None = None
    """The reference under torch.compile, the second baseline; None where it was not asked for."""
    coverage: float | None = None
    """Device time of live Triton launches over all device time of the forward, 0 to 1."""
    launches: tuple[LaunchFact, ...] = ()
    ops: tuple[OpFact, ...] = ()
    max_error: float | None = None
    """Largest error over the rounds, relative to the reference's norm."""
    kernelbench_close: Closeness | None = None
    """How KernelBench would have compared the outputs on the problem's own inputs, whatever the status; None when nothing ran."""
    reference_ops: tuple[OpFact, ...] = ()
    """The reference's own steps: the first is its bottleneck."""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    """Constants of the problem's file that have smaller values where results are compared, see `judging.sizes.fitting`."""
    seconds: Seconds = field(default_factory=Seconds)
    cached: bool = False
    trust: Trust = "traced"

    @property
    def correct(self) -> bool:
        """Whether the status is the one that is a success."""
        return self.status is Status.CORRECT

    def to_json(self) -> dict[str, Any]:
        """The public result object (docs/evaluator.md), without `id`."""
        return {**asdict(self), "status": str(self.status), "correct": self.correct}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Evaluation:
        """The evaluation that `to_json` has shown."""
        fields = {key: value for key, value in data.items() if key not in ("correct", "id")}
        return Evaluation(
            **{
                **fields,
                "status": Status(data["status"]),
                "kernelbench_close": None if (close := data.get("kernelbench_close")) is None else Closeness(close),
                "launches": tuple(LaunchFact(**row) for row in data["launches"]),
                "ops": tuple(OpFact(**row) for row in data["ops"]),
                "reference_ops": tuple(OpFact(**row) for row in data["reference_ops"]),
                "seconds": Seconds(**data["seconds"]),
            }
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """What the policy sampled: the tokens, and the log-probability of each at sampling time."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    stop: StopReason
    sampled_at: tuple[int, ...] = ()
    """For each token, the training steps behind the weights that sampled it; empty where nobody trains. The token's age is the
    step that trains it, from 0, minus this."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the environment's new tokens, the policy's answer, what the evaluator found, what it was worth."""

    context_ids: tuple[int, ...]
    """Tokens that the environment appended before this completion: the prompt, later the feedback. Never trained."""
    completion: Completion
    code: str | None
    """The extracted candidate, None when the completion has no usable code block."""
    evaluation: Evaluation
    reward: float
    feedback: str
    """What the next turn is shown; empty after the last turn."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Consecutive turns on one problem. Its tokens are the concatenation of context and completion, turn by turn."""

    problem: Problem
    turns: tuple[Turn, ...]

    @property
    def best(self) -> Turn:
        """The turn with the largest reward, the first of equal ones."""
        return max(self.turns, key=lambda turn: turn.reward)


@dataclass(frozen=True, slots=True)
class Group:
    """K trajectories of one problem under one policy: the unit over which advantages are computed."""

    problem: Problem
    trajectories: tuple[Trajectory, ...]
