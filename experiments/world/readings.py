"""First drafts about many more tasks, which nobody judges: practice in reading a problem.

A corpus that is judged has a thousand tasks, and a policy knows them by heart: in its drafts for new ones it leaves out steps and
mixes operations up. The drafts of readings have none of the mistakes that the teacher makes on purpose. Their tasks are drawn as
those of the corpus are, but not looked at for operations that hardly matter. No task has a composition that validation keeps for
itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from envs.world.drafts import completion
from envs.world.draw import Ranges, candidate
from envs.world.suite import WEIGHTS, reserved
from envs.world.teacher import BEGINNER, first_draft
from rlkernel.environment.kernel_env import KernelEnvironment


def readings(families: Sequence[str], count: int, seed: str) -> Iterator[tuple[str, str]]:
    """Yield `count` pairs of a prompt and an answer, each about a task of its own of these families, drawn from `seed`."""
    rng = random.Random(f"readings {seed}")
    weights, kept = [WEIGHTS[family] for family in families], reserved()
    environment, found = KernelEnvironment(), set[str]()
    while len(found) < count:
        task = candidate(rng.choices(families, weights=weights)[0], rng, Ranges())
        if task is None or task.composition in kept or task.name in found:
            continue
        found.add(task.name)
        draft = replace(first_draft(task, BEGINNER, rng), slips=())
        yield environment.prompt(task.problem()), completion(draft, "")
