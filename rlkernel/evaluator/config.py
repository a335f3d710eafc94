"""Settings of the evaluator: `EvaluatorConfig` says how candidates are judged, `Limits` what one of them may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rlkernel.errors import UsageError
from rlkernel.evaluator.devices import OF_THE_CARD, profile_of
from rlkernel.types import TIMING_WIDTH, Precision

GIB = 1 << 30
Untraceable = Literal["refused", "native"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one candidate. Seconds of tracing, compiling, running on the CPU and surveys are processor time, so that no
    verdict depends on what else the machine does; whoever only waits has as many, and `processes.spending.BACKSTOP` times as many
    of wall clock end it in any case. All others are wall clock."""

    trace_seconds: int = 5
    compile_seconds: int = 60
    """The seconds that compiling a candidate's kernels may take, with what their compilers start."""
    run_seconds: int = 20
    """The seconds that the CPU runner may take for all rounds of a candidate."""
    forward_seconds: float = 2.0
    """The seconds that one forward may take on the GPU, after which the runner gives up by itself."""
    gpu_seconds: float = 10.0
    """The seconds that a whole stay on the GPU may take; the pool ends a runner that is silent for longer."""
    oracle_seconds: int = 120
    survey_seconds: int = 30
    """The seconds that one reference of a data set may take when it is looked at (`Pool.survey`)."""
    native_seconds: float = 60.0
    """The seconds that a candidate's process may take where it runs as plain Python."""
    memory_bytes: int = 4 * GIB
    """The address space, in bytes, that a child may have on top of what its libraries take."""
    gpu_memory_bytes: int = 0
    """The GPU memory, in bytes, that a candidate, the reference and their inputs may take together; 0: what the card has. A pool
    puts the number of its cards in place of 0, so that verdicts are kept under it."""
    code_bytes: int = 200_000
    """The size above which a candidate's code is `invalid`."""


PATIENT = Limits(trace_seconds=120, run_seconds=120, forward_seconds=10.0, gpu_seconds=120.0)
"""Limits where nobody trains on the verdicts: large networks take seconds to trace, and slow kernels minutes to interpret."""


@dataclass(frozen=True, slots=True)
class EvaluatorConfig:
    """How candidates are judged. All of it is part of every cache key."""

    profile: str = "h200"
    """The GPU that is compiled for, and modelled where there is none: a name of `devices.PROFILES`, or a profile's text. Where
    there is a GPU, its own takes the place of this; "card" leaves also the name of its model aside."""
    precision: Precision = Precision.PYTORCH
    """How exact float32 products are on either side."""
    compiled: bool = False
    """Whether each reference is also timed under torch.compile, once per problem. It takes seconds each, and needs a GPU."""
    seed: int | None = None
    """Where time is modelled: what inputs and weights are drawn from, together with the problem and the candidate, so that equal
    seeds give equal verdicts in every digit. None: fresh secrets each time. Measured evaluations always take those."""
    limits: Limits = Limits()
    untraceable: Untraceable = "refused"
    """What becomes of a candidate that cannot be traced. `native`: it is run as plain Python in a process of its own, and its
    evaluation says `trust: native`. That is for benchmarks: `check_for_training` refuses it."""
    timing_width: float = TIMING_WIDTH
    """Where time is measured: half of a speedup's 95 % interval, relative, at which its trials stop. With a wider one a card
    judges more candidates per second; the output of every trial is compared all the same."""

    def __post_init__(self) -> None:
        if self.profile != OF_THE_CARD:
            profile_of(self.profile)
        if self.precision not in tuple(Precision):
            raise ValueError(f"unknown precision {self.precision!r}: use one of {', '.join(Precision)}")
        object.__setattr__(self, "precision", Precision(self.precision))
        if not self.timing_width > 0:
            raise ValueError(f"timing_width is {self.timing_width}: use a number above 0, such as {TIMING_WIDTH}")


def check_for_training(description: Mapping[str, Any]) -> None:
    """Refuse an evaluator, as it describes itself, whose verdicts a policy could learn to forge. Raises UsageError."""
    if description.get("untraceable") == "native":
        raise UsageError(
            'untraceable="native" is for benchmarks, and not for training: its times are partly the candidate\'s own'
        )
