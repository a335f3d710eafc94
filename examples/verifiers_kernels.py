"""rlkernel's evaluator as an environment for `verifiers` (0.4, `import verifiers.v1`), which this project does not depend on.

    pip install verifiers
    PYTHONPATH=.:examples vf-eval verifiers_kernels ...     or, in a configuration, [env.taskset] id = "verifiers_kernels"

A task is a problem; its reward is the speed reward of the last reply's kernel, beside the metrics `correct`, `speedup` and
`coverage`. The evaluator is opened when the first reply is scored, once per process, and closed with it.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Literal

import verifiers.v1 as vf

from envs.problems import load_directory, load_suite
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.integrations.service import Service, open_service
from rlkernel.types import Evaluation, Problem

__all__ = ["KernelTaskset"]


class KernelData(vf.TaskData):
    """A row of the task set: the prompt, and the problem for the evaluator."""

    level: int = 0
    reference: str = ""
    """The reference file's text."""


class KernelTaskConfig(vf.TaskConfig):
    """How candidates are judged."""

    device: str = "auto"
    """Where candidates are judged. auto: on every GPU, or with modelled time without one."""
    jobs: int = 0
    """How many evaluations run at a time. 0: one per core."""
    style: Literal["short", "full"] = "full"
    """The style of the prompt."""


class KernelTasksetConfig(vf.TasksetConfig):
    """Which problems there are."""

    task: KernelTaskConfig = KernelTaskConfig()
    suite: Path | None = None
    """A directory in KernelBench's layout; without it, rlkernel's suite."""
    split: Literal["train", "validation", "all"] = "train"


@cache
def service(device: str, jobs: int) -> Service:
    """The evaluator, one per process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(open_service(device=device, jobs=jobs))


class KernelTask(vf.Task[KernelData, vf.State, KernelTaskConfig]):
    """One problem. Reward and metrics ask for the same verdict, which is computed once."""

    async def evaluation(self, trace: vf.Trace) -> Evaluation:
        """The evaluation of the last reply."""
        problem = Problem(self.data.name or "", self.data.level, "train", self.data.reference)
        code = KernelEnvironment(self.config.style).extract(trace.last_reply)
        return await service(self.config.device, self.config.jobs).evaluate_async(problem, code)

    @vf.reward
    async def speed(self, trace: vf.Trace) -> float:
        """The reward of `rlkernel.environment.speed_reward` for the last reply."""
        return SpeedReward()(await self.evaluation(trace))

    @vf.metric
    async def facts(self, trace: vf.Trace) -> dict[str, float]:
        """The facts that the reward is made of, and some that it leaves out."""
        found = await self.evaluation(trace)
        counted = found.correct
        return {
            "correct": float(counted),
            "speedup": (found.speedup or 0.0) if counted else 0.0,
            "coverage": (found.coverage or 0.0) if counted else 0.0,
        }


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):
    """The problems of a suite."""

    def load(self) -> Iterable[KernelTask]:
        """Yield the problems in the suite's order."""
        config = self.config
        problems = load_suite() if config.suite is None else load_directory(config.suite)
        for problem in problems:
            if config.split in ("all", problem.split):
                prompt = KernelEnvironment(config.task.style).prompt(problem)
                data = KernelData(name=problem.name, prompt=prompt, level=problem.level, reference=problem.source)
                yield KernelTask(data, config.task)
