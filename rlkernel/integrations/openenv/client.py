"""The typed client.

    with KernelEnv(base_url="http://127.0.0.1:8000").sync() as env:
        told = env.reset(problem="level1/19_ReLU").observation.message
        while not (result := env.step(KernelAction(message=answer(told)))).done:
            told = result.observation.message

Each client has a conversation of its own on the server. Without `.sync()`, `reset` and `step` are awaited.
"""

from __future__ import annotations

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.types import State

from rlkernel.integrations.openenv.models import KernelAction, KernelObservation


class KernelEnv(EnvClient[KernelAction, KernelObservation, State]):  # type: ignore[misc]
    """A conversation with a server of `rlkernel.integrations.openenv.server`."""

    def _step_payload(self, action: KernelAction) -> dict[str, Any]:
        return {"message": action.message}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KernelObservation]:
        reward, done = payload.get("reward"), payload.get("done", False)
        observation = KernelObservation(**{**payload["observation"], "reward": reward, "done": done})
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)
