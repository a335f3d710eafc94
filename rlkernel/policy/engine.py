"""The door to what samples completions: requests join an `Engine`, samples leave it, and in between it is asked to go on.

An engine of your own, such as one around a serving library, has the four members of `Engine`. `Run.engine` names it as
`module:Class`, which is called with (model, stop_ids, temperature, slots=...), where `model` is the trainer's.
`examples/http_engine.py` is one that samples in another process. `tests/policy/test_engine.py` says what all engines must do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from rlkernel.types import StopReason


@dataclass(frozen=True, slots=True)
class Request:
    """A completion that is asked for."""

    key: int
    """Names the request; its sample has the same key."""
    context_ids: tuple[int, ...]
    seed: int
    """The completion's random numbers depend on this alone."""
    budget: int
    """The most tokens that may be sampled, at least 1."""
    drawn: int = 0
    """The number of the completion's tokens that were sampled earlier and stand at the end of the context: the completion goes on
    with the random numbers after theirs (`uniforms`). An engine that draws otherwise seeds itself by `seed` and this together."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The completion that a request got."""

    key: int
    token_ids: tuple[int, ...]
    """The stop token is the last of them, if the completion stopped."""
    logprobs: tuple[float, ...]
    """The log-probability of each token under softmax(logits / temperature) over the whole vocabulary."""
    stop: StopReason


class Engine(Protocol):
    """What samples completions from the trainer's weights. One thread uses it at a time."""

    @property
    def active(self) -> int:
        """The number of requests that joined and have not finished."""
        ...

    @property
    def free(self) -> int:
        """The number of further requests that would be sampled at once. More may join, and wait inside the engine."""
        ...

    def advance(self, joining: Sequence[Request], tokens: int) -> list[Sample]:
        """Admit requests, sample about `tokens` tokens for each in flight, and return what finished. All work on the device is
        done when this returns."""
        ...

    def refresh(self) -> None:
        """Take over the trainer's weights, which have changed, and drop what was computed with earlier ones. Raises RuntimeError
        while requests are in flight."""
        ...


def uniforms(request: Request) -> torch.Tensor:
    """One number in [0, 1) for each token that may be sampled: float64, (budget,), on the CPU. They depend on the seed and on the
    token's place in its completion alone."""
    generator = torch.Generator().manual_seed(request.seed)
    return torch.rand(request.drawn + request.budget, generator=generator, dtype=torch.float64)[request.drawn :]


def check_temperature(temperature: float) -> None:
    """Raise ValueError unless temperature > 0."""
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature}: it must be positive, since log-probabilities are recorded")


def check_idle(engine: Engine) -> None:
    """Raise RuntimeError while an engine has requests, whose weights may not change under them."""
    if engine.active:
        raise RuntimeError("the weights may not change while completions are being sampled")
