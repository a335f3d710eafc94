"""An environment of `verifiers` (0.4, `import verifiers.v1`): conversations with feedback, `pip install 'rlkernel[verifiers]'`.

    vf-eval rlkernel-verifiers --env.taskset.problems DIR -m NAME --client.base-url http://127.0.0.1:8000/v1

verifiers finds a plugin by the name of a top-level module; ours is `rlkernel_verifiers`. A task is a problem. The prompt opens
the conversation, every answer is judged, and its feedback is the next message. The evaluator is opened once, while the
environment serves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Literal

import verifiers.v1 as vf
from pydantic import Field

from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.evaluator.config import check_for_training
from rlkernel.integrations.service import Service, open_service
from rlkernel.sources.load import load
from rlkernel.types import Evaluation, Problem


class KernelData(vf.TaskData):  # type: ignore[misc]
    """A row of the task set: the prompt, and the problem for the evaluator."""

    level: int = 0
    reference: str = ""
    """The text of the reference's file."""


class KernelTask(vf.Task[KernelData]):  # type: ignore[misc]
    """One problem. The environment judges its answers, so the task has no rewards of its own."""


class KernelTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Which problems there are, and how they are shown."""

    problems: str = ""
    """A directory in KernelBench's layout, a .parquet or .jsonl file, or owner/name[:split][@revision] on the hub."""
    style: Literal["short", "full"] = "full"
    """The style of the prompt and the feedback."""


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):  # type: ignore[misc]
    """The problems of a source."""

    def load(self) -> Iterator[KernelTask]:
        """Yield the problems in the source's order. Raises UsageError for a source that holds none."""
        shown = KernelEnvironment(self.config.style)
        for problem in load(self.config.problems).problems:
            data = KernelData(name=problem.name, prompt=shown.prompt(problem), level=problem.level, reference=problem.source)
            yield KernelTask(data, self.config.task)


class KernelEnvConfig(vf.EnvConfig):  # type: ignore[misc]
    """Who answers, for how many turns, and where the answers are judged."""

    agent: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})
    """The policy, without tools: its harness runs nothing that a model writes."""
    turns: int = Field(3, ge=1)
    """Answers after which a conversation ends."""
    device: str = "auto"
    """Where candidates are judged: auto, cpu (modelled time), cuda or cuda:N."""
    jobs: int = 0
    """Evaluations at a time; 0: one per core."""


class KernelEnv(vf.Env[KernelEnvConfig]):  # type: ignore[misc]
    """A conversation per task. Its reward is the best answer's; metrics are the facts of that answer, and every turn's reward.

    A broken reference, or an evaluator that fails, is an error of the episode and never a reward.
    """

    service: Service

    async def start(self) -> None:
        """Open the evaluator. Raises UsageError for one whose verdicts a policy could learn to forge."""
        with ExitStack() as opening:
            self.service = opening.enter_context(open_service(device=self.config.device, jobs=self.config.jobs))
            check_for_training(self.service.describe())
            self._open = opening.pop_all()  # whoever is refused is closed here: nobody stops what did not start

    async def stop(self) -> None:
        """Close the evaluator."""
        self._open.close()

    async def run(self, task: KernelTask, agents: vf.Agents) -> None:
        """One conversation."""
        data, shown = task.data, KernelEnvironment(self.taskset.config.style)
        problem = Problem(data.name, data.level, "train", data.reference)
        judged: list[Evaluation] = []
        async with agents.agent.interaction(task) as talk:
            answer = await talk.turn()
            while not answer.terminated:
                judged.append(await self.service.evaluate_async(problem, shown.extract(answer.last_reply)))
                if len(judged) == self.config.turns:
                    break
                answer = await talk.turn(shown.feedback(judged[-1]))
        if judged:
            record(talk.trace, judged)


def record(trace: vf.Trace, judged: list[Evaluation]) -> None:
    """Record the reward and the metrics of a conversation's answers in a trace."""
    rewards = [float(SpeedReward()(evaluation)) for evaluation in judged]
    best = judged[rewards.index(max(rewards))]
    trace.record_reward("best", max(rewards))
    trace.record_metrics(
        {
            "correct": float(best.correct),
            "speedup": (best.speedup or 0.0) if best.correct else 0.0,
            "coverage": (best.coverage or 0.0) if best.correct else 0.0,
            **{f"reward_turn_{turn}": reward for turn, reward in enumerate(rewards, 1)},
        }
    )
