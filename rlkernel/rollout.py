"""One problem to K trajectories: prompt, generate, extract, evaluate, feed back.

Every trajectory is a coroutine that goes on by itself: it waits for its own completion and its own evaluation, never for its
siblings. A trajectory has `turns` turns; it ends early when its context leaves no room for another completion, or where `Stop`
says so. Else it goes on after a correct turn (the next one may be faster) and after a completion without code (the feedback says
what is missing).
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import anyio

from rlkernel.errors import UsageError
from rlkernel.interfaces import Environment, Evaluator, Policy, Reward
from rlkernel.returned import reward_of
from rlkernel.settings import Stop
from rlkernel.types import Completion, Group, Problem, Trajectory, Turn

T = TypeVar("T")
OnTurn = Callable[[Turn], None]


def derive_seed(*parts: int | str) -> int:
    """A seed of 63 bits that depends on all parts and on nothing else."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big") >> 1


def _ignore(turn: Turn) -> None:
    """The progress callback of those who do not look."""


@dataclass(frozen=True, slots=True)
class Course:
    """How far a trajectory has gone: all that `go_on` needs to go on with it."""

    turns: tuple[Turn, ...] = ()
    begun: Completion | None = None
    """The part of the next turn's completion that is sampled, which is paused; None between turns."""
    over: bool = False
    """Whether the trajectory has ended."""


async def rollout(
    problem: Problem,
    policy: Policy,
    evaluator: Evaluator,
    environment: Environment,
    reward: Reward,
    turns: int,
    *,
    seed: int,
    stop: Stop | None = None,
    on_turn: OnTurn = _ignore,
) -> Trajectory:
    """One trajectory of at most `turns` turns, fewer where `stop` ends it. `on_turn` is called after each evaluation.

    Raises UsageError when not even the prompt leaves room for a completion, and whatever the reward raises.
    """
    whole = await go_on(
        problem, Course(), policy, evaluator, environment, reward, turns, seed=seed, stop=stop, on_turn=on_turn
    )  # fmt: skip
    return Trajectory(problem, whole.turns)


async def go_on(
    problem: Problem,
    course: Course,
    policy: Policy,
    evaluator: Evaluator,
    environment: Environment,
    reward: Reward,
    turns: int,
    *,
    seed: int,
    stop: Stop | None = None,
    on_turn: OnTurn = _ignore,
    tokens: int | None = None,
) -> Course:
    """Go on with a trajectory, as `rollout` has it, to its end or until `tokens` more tokens are sampled. Where it is interrupted
    changes what is sampled only if the policy's weights change meanwhile."""
    if course.over:
        return course
    done, begun = list(course.turns), course.begun
    context_ids, sequence_ids = _context(problem, done, policy, environment)
    while True:
        sequence_ids += context_ids
        if tokens == 0:
            return Course(tuple(done), begun)
        completion = await policy.generate(sequence_ids, derive_seed(seed, len(done)), begun, tokens)
        if completion is None:
            break
        if tokens is not None:
            tokens -= len(completion.token_ids) - (len(begun.token_ids) if begun else 0)
        if completion.stop == "paused":
            return Course(tuple(done), completion)
        begun = None
        sequence_ids += completion.token_ids
        code = environment.extract(completion.text)
        evaluation = await evaluator.evaluate(problem, code)
        turn = Turn(context_ids, completion, code, evaluation, reward_of(reward, evaluation), "")
        last = len(done) + 1 == turns or (stop is not None and stop(turn))
        feedback = "" if last else environment.feedback(evaluation)
        done.append(replace(turn, feedback=feedback))
        on_turn(done[-1])
        if last:
            return Course(tuple(done), over=True)
        context_ids = policy.encode_feedback(feedback, truncated=completion.stop == "length")
    if not done:
        raise UsageError(
            f"the prompt of {problem.name} has {len(sequence_ids)} tokens, which leaves no room for a completion: "
            "lower max_new_tokens, leave the problem out, or use a model with a longer context"
        )
    # The context is full: nobody was shown the last feedback.
    return Course((*done[:-1], replace(done[-1], feedback="")), over=True)


def _context(
    problem: Problem, done: Sequence[Turn], policy: Policy, environment: Environment
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens that the environment appends before the next completion, and all tokens before these."""
    if not done:
        return policy.encode_prompt(environment.prompt(problem)), ()
    before = tuple(token for turn in done for token in (*turn.context_ids, *turn.completion.token_ids))
    return policy.encode_feedback(done[-1].feedback, truncated=done[-1].completion.stop == "length"), before


async def rollout_groups(
    problems: Sequence[Problem],
    rollouts: int,
    policy: Policy,
    evaluator: Evaluator,
    environment: Environment,
    reward: Reward,
    turns: int,
    *,
    seed: int,
    stop: Stop | None = None,
    on_turn: OnTurn = _ignore,
) -> tuple[Group, ...]:
    """`rollouts` trajectories of every problem, as `concurrent_groups` has them."""

    async def one(problem: Problem, own: int) -> Trajectory:
        return await rollout(problem, policy, evaluator, environment, reward, turns, seed=own, stop=stop, on_turn=on_turn)

    return await concurrent_groups(problems, rollouts, seed, one)


async def concurrent_groups(
    problems: Sequence[Problem], rollouts: int, seed: int, trajectory: Callable[[Problem, int], Awaitable[Trajectory]]
) -> tuple[Group, ...]:
    """`rollouts` times `trajectory(problem, seed)` of every problem, all concurrent. Group i belongs to problems[i]."""

    async def one(i: int, k: int, own: int) -> Trajectory:
        return await trajectory(problems[i], own)

    found = await concurrent(problems, rollouts, seed, one)
    return tuple(Group(problem, trajectories) for problem, trajectories in zip(problems, found, strict=True))


async def concurrent(
    problems: Sequence[Problem], rollouts: int, seed: int, one: Callable[[int, int, int], Awaitable[T]]
) -> tuple[tuple[T, ...], ...]:
    """What `one(i, k, seed)` returns for the k-th trajectory of problems[i], all concurrent. The seeds depend on the position in
    the group and on the problem's name, not on who finishes first."""
    found: dict[tuple[int, int], T] = {}

    async def keep(i: int, k: int) -> None:
        found[i, k] = await one(i, k, derive_seed(seed, i, problems[i].name, k))

    async with anyio.create_task_group() as tasks:
        for i in range(len(problems)):
            for k in range(rollouts):
                tasks.start_soon(keep, i, k)
    return tuple(tuple(found[i, k] for k in range(rollouts)) for i in range(len(problems)))
