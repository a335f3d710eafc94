"""What a policy of the world is taught from and measured on: tasks, their conversations, validation problems."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from envs.teacher.corpus import Conversation
from envs.world.corpus import write_corpus
from envs.world.draw import Ranges, candidate, idle
from envs.world.suite import TRAINING, training_tasks, validation_tasks, world_problems
from envs.world.task import Task
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.evaluator.pool import Pool
from rlkernel.types import Problem


@dataclass(frozen=True)
class World:
    """The part of a recipe that says what is taught."""

    families: tuple[str, ...]
    extra: int
    """Tasks beside those of training, of the same families and sizes, and of no composition that validation keeps for itself."""
    conversations: int
    """Conversations per task."""
    device: str = "auto"
    """What judges the corpus: auto (a GPU where there is one), or cpu (modelled time)."""
    rollouts: int = 2
    """Trajectories per validation problem, for the table at the end."""

    def tasks(self, seed: int) -> tuple[Task, ...]:
        """The tasks of the corpus."""
        rng = random.Random(f"corpus {seed}")
        kept = {task.composition for task in validation_tasks()} - {task.composition for task in training_tasks()}
        weights = [TRAINING[family] for family in self.families]
        found = {task.name: task for task in training_tasks(self.families)}
        wanted = len(found) + self.extra
        while len(found) < wanted:
            task = candidate(rng.choices(self.families, weights=weights)[0], rng, Ranges())
            if task is not None and task.composition not in kept and task.name not in found and not idle(task):
                found[task.name] = task
        return tuple(found.values())

    async def corpus(self, seed: int, pool: Pool, on_done: Callable[[Conversation], None]) -> tuple[Conversation, ...]:
        """Write and judge the conversations."""
        environment = KernelEnvironment()
        lanes = 2 * pool.jobs
        return await write_corpus(
            self.tasks(seed), pool, environment, conversations=self.conversations, seed=seed, at_once=lanes, on_done=on_done
        )

    def total(self) -> int:
        """The number of conversations."""
        return (len(training_tasks(self.families)) + self.extra) * self.conversations

    def validation(self) -> tuple[Problem, ...]:
        """The problems of the table at the end."""
        return tuple(problem for problem in world_problems(self.families) if problem.split == "validation")


ALL = tuple(TRAINING)
TWO = ("chain", "row")
"""The families of the policy for machines without a GPU."""
