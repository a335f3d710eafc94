"""Conversations between the teacher and the evaluator: the corpus of the cold start.

Every verdict and every feedback text comes from really evaluating the candidate that stands in the answer before it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from envs.teacher.drafts import Draft, completion
from envs.teacher.script import CAPABLE, Mixture, draw_deck, next_draft, remark
from rlkernel.interfaces import Environment, Evaluator
from rlkernel.types import Evaluation, Problem

AT_ONCE = 8
"""How many conversations are in progress: enough to keep the evaluator busy, few enough to keep a problem's evaluations
together."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One answer and what the evaluator found. `feedback` is empty after the last answer."""

    answer: str
    evaluation: Evaluation
    feedback: str


@dataclass(frozen=True, slots=True)
class Conversation:
    problem: Problem
    prompt: str
    exchanges: tuple[Exchange, ...]


async def converse(
    problem: Problem,
    deck: tuple[Draft, ...],
    evaluator: Evaluator,
    environment: Environment,
    turns: int,
    rng: random.Random,
    mixture: Mixture,
) -> Conversation:
    """Hold one conversation of `turns` answers, which starts with a draft of the deck."""
    draft = rng.choice(deck)
    opening = ""
    exchanges: list[Exchange] = []
    for turn in range(turns):
        answer = completion(draft, opening)
        evaluation = await evaluator.evaluate(problem, environment.extract(answer))
        last = turn + 1 == turns
        exchanges.append(Exchange(answer, evaluation, "" if last else environment.feedback(evaluation)))
        if not last:
            draft, opening = next_draft(deck, draft, evaluation, rng, mixture), remark(evaluation)
    return Conversation(problem, environment.prompt(problem), tuple(exchanges))


async def write_corpus(
    problems: Sequence[Problem],
    evaluator: Evaluator,
    environment: Environment,
    *,
    conversations: int,
    deck: int,
    turns: int,
    seed: int,
    mixture: Mixture = CAPABLE,
    on_done: Callable[[Conversation], None],
) -> tuple[Conversation, ...]:
    """Write `conversations` per problem, from `deck` first drafts. Their order is fixed, and they depend on the seed and the
    verdicts alone.

    Raises ValueError if a problem is no elementwise chain.
    """
    decks = [draw_deck(problem.source, deck, random.Random(f"{seed} {problem.name}"), mixture) for problem in problems]
    found: dict[tuple[int, int], Conversation] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def one(i: int, k: int) -> None:
        rng = random.Random(f"{seed} {problems[i].name} {k}")
        async with limiter:
            found[i, k] = await converse(problems[i], decks[i], evaluator, environment, turns, rng, mixture)
        on_done(found[i, k])

    async with anyio.create_task_group() as tasks:
        for i in range(len(problems)):
            for k in range(conversations):
                tasks.start_soon(one, i, k)
    return tuple(found[i, k] for i in range(len(problems)) for k in range(conversations))
