"""How candidates are judged, and what one of them may take: `EvaluatorConfig` and `Limits`."""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.evaluator.devices import PROFILES

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """What one candidate may take. Seconds are wall clock; CPU seconds are limited to the same number."""

    trace_seconds: int = 5
    compile_seconds: int = 60
    run_seconds: int = 20
    """On the CPU path."""
    forward_seconds: float = 2.0
    """One forward on the GPU: the runner gives up by itself."""
    gpu_seconds: float = 10.0
    """A whole stay on the GPU: the pool ends a runner that is silent for longer."""
    oracle_seconds: int = 120
    memory_bytes: int = 4 * GIB
    """Address space on top of the libraries'."""
    gpu_memory_bytes: int = 64 * GIB
    """Of the GPU's memory, for a candidate, the reference and their inputs together."""
    code_bytes: int = 200_000


@dataclass(frozen=True, slots=True)
class EvaluatorConfig:
    """How candidates are judged; part of every cache key."""

    profile: str = "h200"
    """The GPU that is compiled for, and modelled where there is none; see `devices.PROFILES`."""
    tf32: bool = False
    """Whether a float32 task may use tf32 matrix units."""
    compiled: bool = False
    """Whether each reference is also timed under torch.compile, once per problem; seconds for each, GPU only."""
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise ValueError(f"unknown device profile {self.profile!r}: use one of {', '.join(PROFILES)}")
