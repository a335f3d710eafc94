"""The server: one conversation per client, all judged by one evaluator.

A client names one of the server's problems. It cannot bring a reference of its own: references are trusted code.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import State

from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.integrations.openenv.models import KernelAction, KernelObservation
from rlkernel.integrations.service import Service
from rlkernel.interfaces import Environment as Told
from rlkernel.interfaces import Reward
from rlkernel.returned import reward_of
from rlkernel.types import Problem

CLIENTS = 256
"""The most conversations at a time."""
SHOWN = 5
"""The most names of problems in the answer to an unknown one."""


@dataclass(frozen=True)
class Task:
    """What every conversation of a server is about."""

    service: Service
    problems: Mapping[str, Problem]
    """The problems by name."""
    environment: Told = field(default_factory=lambda: KernelEnvironment("full"))
    """What writes the prompt and the feedback, and finds the code."""
    reward: Reward = field(default_factory=SpeedReward)
    turns: int = 3
    """The answers after which a conversation ends."""


class Conversation(Environment):  # type: ignore[misc]
    """OpenEnv's environment of one client."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task = task
        self._problem: Problem | None = None
        self._state = State(episode_id=str(uuid4()), step_count=0)

    @property
    def state(self) -> State:
        return self._state

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, problem: str | None = None, **_: Any
    ) -> KernelObservation:
        """Begin a conversation about the named problem, or one that the seed draws. Raises ValueError for an unknown name."""
        problems = self._task.problems
        if problem is None:
            problem = random.Random(seed).choice(sorted(problems))
        if problem not in problems:
            more = ", ..." if len(problems) > SHOWN else ""
            raise ValueError(f"unknown problem {problem!r}: the server has {', '.join(sorted(problems)[:SHOWN])}{more}")
        self._problem = problems[problem]
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        return KernelObservation(message=self._task.environment.prompt(self._problem), problem=problem)

    def step(self, action: KernelAction, timeout_s: float | None = None, **_: Any) -> KernelObservation:
        """Judge an answer, and wait for the verdict. Raises ValueError outside of a conversation."""
        raise NotImplementedError("the server awaits step_async")

    async def step_async(self, action: KernelAction, timeout_s: float | None = None, **_: Any) -> KernelObservation:
        """Judge an answer. Raises ValueError outside of a conversation."""
        task, problem = self._task, self._problem
        if problem is None or self._state.step_count >= task.turns:
            raise ValueError("the conversation has not begun, or has ended: call reset first")
        evaluation = await task.service.evaluate_async(problem, task.environment.extract(action.message))
        self._state.step_count += 1
        done = self._state.step_count >= task.turns
        return KernelObservation(
            message="" if done else task.environment.feedback(evaluation),
            problem=problem.name,
            turn=self._state.step_count,
            evaluation=evaluation.to_json(),
            reward=reward_of(task.reward, evaluation),
            done=done,
        )


def app(task: Task) -> Any:
    """The FastAPI application of a server."""
    return create_app(
        lambda: Conversation(task), KernelAction, KernelObservation, env_name="rlkernel", max_concurrent_envs=CLIENTS
    )
