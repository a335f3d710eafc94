"""Conversations between the teacher and the evaluator: the corpus of the cold start.

Every verdict and every feedback text comes from really evaluating the candidate that stands in the answer before it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

import anyio

from envs.teacher.corpus import AT_ONCE, Conversation, Exchange
from envs.world.drafts import completion
from envs.world.task import Task
from envs.world.teacher import BEGINNER, Mixture, first_draft, next_draft, remark
from rlkernel.interfaces import Environment, Evaluator
from rlkernel.metrics import is_lazy

TURNS = ((1, 2, 3, 4, 6, 8), (1, 2, 3, 3, 2, 2))
"""The lengths of conversations and their weights: up to eight turns, 3.8 on average."""
Key = tuple[str, int]
"""A conversation of a corpus: the task's name, and its number among those about the task."""


async def converse(
    task: Task, evaluator: Evaluator, environment: Environment, turns: int, rng: random.Random, mixture: Mixture = BEGINNER
) -> Conversation:
    """Hold one conversation of `turns` answers about a task."""
    problem = task.problem()
    draft = first_draft(task, mixture, rng)
    opening = ""
    exchanges: list[Exchange] = []
    for turn in range(turns):
        answer = completion(draft, opening)
        evaluation = await evaluator.evaluate(problem, environment.extract(answer))
        last = turn + 1 == turns
        exchanges.append(Exchange(answer, evaluation, "" if last else environment.feedback(evaluation)))
        draft, opening = next_draft(draft, evaluation, rng, mixture), remark(task, evaluation)
    return Conversation(problem, environment.prompt(problem), tuple(exchanges))


async def write_corpus(
    tasks: Sequence[Task],
    evaluator: Evaluator,
    environment: Environment,
    *,
    conversations: int,
    seed: int,
    mixture: Mixture = BEGINNER,
    at_once: int = AT_ONCE,
    known: Mapping[Key, Conversation] = MappingProxyType({}),
    until: float = math.inf,
    on_done: Callable[[Key, Conversation], None],
) -> tuple[Conversation, ...]:
    """Write `conversations` per task. Their order is fixed, and they depend on the seed and the verdicts alone. known: those that
    were written before. until: the monotonic time after which none is begun; those that are missing then are left out."""
    found = dict(known)
    limiter = anyio.CapacityLimiter(at_once)

    async def one(task: Task, k: int) -> None:
        rng = random.Random(f"{seed} {task.name} {k}")
        turns = rng.choices(*TURNS)[0]
        async with limiter:
            if time.monotonic() > until:
                return
            found[task.name, k] = await converse(task, evaluator, environment, turns, rng, mixture)
        on_done((task.name, k), found[task.name, k])

    keys = [(task, k) for task in tasks for k in range(conversations)]
    async with anyio.create_task_group() as group:
        for task, k in keys:
            if (task.name, k) not in found:
                group.start_soon(one, task, k)
    return tuple(found[task.name, k] for task, k in keys if (task.name, k) in found)


def repetition(corpus: Sequence[Conversation]) -> float:
    """The share of lazy answers among those that follow a lazy answer; 0 if none does."""
    pairs = [(a.evaluation, b.evaluation) for conversation in corpus for a, b in pairwise(conversation.exchanges)]
    after = [is_lazy(second) for first, second in pairs if is_lazy(first)]
    return sum(after) / len(after) if after else 0.0
