"""What a policy of the world is taught from and measured on: tasks, their conversations, validation problems."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

from envs.teacher.corpus import Conversation
from envs.world.corpus import Key, write_corpus
from envs.world.draw import Ranges, candidate, idle
from envs.world.suite import TRAINING, WEIGHTS, reserved, training_tasks, world_problems
from envs.world.task import Task
from experiments.world.corpus_file import CorpusFile
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
    readings: int = 0
    """First drafts beside the conversations, each about a task of its own, which nobody judges, see `readings.py`."""
    few: int | None = None
    """Only so many tasks of training per family, and so many validation problems: for a rehearsal."""

    def tasks(self, seed: int) -> tuple[Task, ...]:
        """The tasks of the corpus."""
        rng = random.Random(f"corpus {seed}")
        weights = [WEIGHTS[family] for family in self.families]
        found = {task.name: task for task in self.taught()}
        wanted = len(found) + self.extra
        while len(found) < wanted:
            task = candidate(rng.choices(self.families, weights=weights)[0], rng, Ranges())
            if task is not None and task.composition not in reserved() and task.name not in found and not idle(task):
                found[task.name] = task
        return tuple(found.values())

    def label(self, seed: int) -> str:
        """The name of the corpus's file, without its ending: another corpus has another one."""
        what = repr((self.families, self.extra, self.conversations, self.few, self.device, seed))
        return f"corpus_{hashlib.sha256(what.encode()).hexdigest()[:8]}"

    async def corpus(self, seed: int, pool: Pool, file: CorpusFile, until: float) -> None:
        """Hold and judge the conversations that the file lacks, and show the progress. Some are missing where the monotonic clock
        passed `until`."""
        total, tasks = self.total(), {task.name: task for task in self.tasks(seed)}

        def done(key: Key, conversation: Conversation) -> None:
            file.add(tasks[key[0]], key[1], conversation)
            if len(file.found) % (total // 20 or 1) == 0:
                print(f"corpus: {len(file.found)} of {total} conversations", flush=True)

        await write_corpus(
            tuple(tasks.values()),
            pool,
            KernelEnvironment(),
            conversations=self.conversations,
            seed=seed,
            at_once=2 * pool.jobs,
            known=dict(file.found),
            until=until,
            on_done=done,
        )

    def total(self) -> int:
        """The number of conversations."""
        return (len(self.taught()) + self.extra) * self.conversations

    def taught(self) -> tuple[Task, ...]:
        """The tasks of training that are in the corpus: `few` of each family, or all."""
        tasks = training_tasks(self.families)
        if self.few is None:
            return tasks
        return tuple(task for family in self.families for task in [t for t in tasks if t.family == family][: self.few])

    def validation(self) -> tuple[Problem, ...]:
        """The problems of the table at the end."""
        asked = tuple(problem for problem in world_problems(self.families) if problem.split == "validation")
        return asked if self.few is None else asked[: self.few]


ALL = tuple(TRAINING)
TWO = ("chain", "row")
"""The families of the policy for machines without a GPU."""
