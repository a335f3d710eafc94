"""The plain values that an actor answers with. They need neither torch nor Ray, so every node can read them."""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.types import Evaluation


@dataclass(frozen=True, slots=True)
class Hello:
    """What an actor says about its pool, once that is open."""

    device: str
    """The string "cpu", or the name of the actor's GPU: part of a result's key."""
    cards: tuple[str, ...]
    """The UUIDs of the GPUs that the pool measures on."""
    jobs: int
    """The number of evaluations that the pool makes at a time."""
    config: EvaluatorConfig
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of one evaluation: its verdict, or why the problem can have none, or why this actor must be replaced.

    All three are empty for an evaluation that was dropped.
    """

    evaluation: Evaluation | None = None
    broken: str = ""
    failed: str = ""
    notices: tuple[str, ...] = ()
    """The lines that the pool has said so far about times that may be wrong."""
