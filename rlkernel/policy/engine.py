"""What a generation back end is: requests join, samples leave, and in between the engine is asked to go on for a while."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from rlkernel.types import StopReason


@dataclass(frozen=True, slots=True)
class Request:
    """`budget`: tokens that may be sampled, at least 1."""

    key: int
    context_ids: tuple[int, ...]
    seed: int
    budget: int


@dataclass(frozen=True, slots=True)
class Sample:
    """`logprobs`: of each token under softmax(logits / temperature), untruncated."""

    key: int
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop: StopReason


class Engine(Protocol):
    """Used by one thread at a time."""

    @property
    def active(self) -> int:
        """Requests that joined and have not finished."""
        ...

    @property
    def free(self) -> int:
        """How many more would be sampled at once; others may join too, and wait inside the engine."""
        ...

    def advance(self, joining: Sequence[Request], tokens: int) -> list[Sample]:
        """Admit requests, sample about `tokens` tokens for each in flight, and return what finished. All work on the device is
        done when this returns."""
        ...

    def refresh(self) -> None:
        """The trainer's weights have changed: take them over, and drop what was computed with earlier ones. RuntimeError while
        requests are in flight."""
        ...


class Batches:
    """What engines share that sample a whole batch in one `advance`: requests wait until the batch before theirs is done."""

    def __init__(self, slots: int) -> None:
        """slots: requests of a batch at most."""
        self._slots = slots
        self._queue: list[Request] = []

    @property
    def active(self) -> int:
        return len(self._queue)

    @property
    def free(self) -> int:
        return max(0, self._slots - len(self._queue))

    def check_idle(self) -> None:
        """Raises RuntimeError while requests wait."""
        if self._queue:
            raise busy_error()

    def take(self, joining: Sequence[Request]) -> list[Request]:
        """The next batch."""
        self._queue += joining
        batch, self._queue = self._queue[: self._slots], self._queue[self._slots :]
        return batch


def uniforms(request: Request) -> torch.Tensor:
    """One number in [0, 1) for each token that may be sampled, float64 (budget,) on the CPU: a function of the seed alone."""
    generator = torch.Generator().manual_seed(request.seed)
    return torch.rand(request.budget, generator=generator, dtype=torch.float64)


def check_temperature(temperature: float) -> None:
    """Raises ValueError unless temperature > 0."""
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature}: it must be positive, since log-probabilities are recorded")


def busy_error() -> RuntimeError:
    return RuntimeError("the weights may not change while completions are being sampled")
