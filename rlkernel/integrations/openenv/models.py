"""What goes between the server and its clients, as OpenEnv wants it: pydantic models."""

from __future__ import annotations

from typing import Any

from openenv.core.env_server.types import Action, Observation
from pydantic import Field


class KernelAction(Action):  # type: ignore[misc]
    """One answer of a policy."""

    message: str
    """The whole completion, with a fenced block that holds `ModelNew`."""


class KernelObservation(Observation):  # type: ignore[misc]
    """What a policy is told next; `reward` and `done` are OpenEnv's own fields."""

    message: str = ""
    """The prompt after a reset, then the feedback; empty when the conversation has ended."""
    problem: str = ""
    """The name of the problem."""
    turn: int = 0
    """The answers so far."""
    evaluation: dict[str, Any] = Field(default_factory=dict)
    """The facts about the last answer, as `rlkernel.types.Evaluation.to_json` has them; empty after a reset."""
