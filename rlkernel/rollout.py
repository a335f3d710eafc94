"""One problem to K trajectories: prompt, generate, extract, evaluate, feed back.

Every trajectory is a coroutine that goes on by itself: it waits for its own completion and its own evaluation, never for its
siblings. A trajectory has `turns` turns; it ends early when its context leaves no room for another completion, or where `Stop`
says so. Else it goes on after a correct turn (the next one may be faster) and after a completion without code (the feedback says
what is missing).
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import anyio

from rlkernel.errors import UsageError
from rlkernel.interfaces import Environment, Evaluator, Policy, Reward
from rlkernel.settings import Stop
from rlkernel.types import Group, Problem, Trajectory, Turn

OnTurn = Callable[[Turn], None]


def derive_seed(*parts: int | str) -> int:
    """A seed of 63 bits that depends on all parts and on nothing else."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big") >> 1


def _ignore(turn: Turn) -> None:
    """The progress callback of those who do not look."""


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
    done: list[Turn] = []
    context_ids = policy.encode_prompt(environment.prompt(problem))
    sequence_ids: tuple[int, ...] = ()
    while True:
        sequence_ids += context_ids
        completion = await policy.generate(sequence_ids, derive_seed(seed, len(done)))
        if completion is None:
            break
        sequence_ids += completion.token_ids
        code = environment.extract(completion.text)
        evaluation = await evaluator.evaluate(problem, code)
        turn = Turn(context_ids, completion, code, evaluation, reward(evaluation), "")
        last = len(done) + 1 == turns or (stop is not None and stop(turn))
        feedback = "" if last else environment.feedback(evaluation)
        done.append(replace(turn, feedback=feedback))
        on_turn(done[-1])
        if last:
            return Trajectory(problem, tuple(done))
        context_ids = policy.encode_feedback(feedback, truncated=completion.stop == "length")
    if not done:
        raise UsageError(
            f"the prompt of {problem.name} has {len(sequence_ids)} tokens, which leaves no room for a completion: "
            "lower max_new_tokens, or use a model with a longer context"
        )
    # The context is full: nobody was shown the last feedback.
    return Trajectory(problem, (*done[:-1], replace(done[-1], feedback="")))


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
    """`rollouts` times `trajectory(problem, seed)` of every problem, all concurrent. Group i belongs to problems[i]; the seeds
    depend on the position in the group and on the problem's name, not on who finishes first."""
    found: dict[tuple[int, int], Trajectory] = {}

    async def one(i: int, k: int) -> None:
        found[i, k] = await trajectory(problems[i], derive_seed(seed, i, problems[i].name, k))

    async with anyio.create_task_group() as tasks:
        for i in range(len(problems)):
            for k in range(rollouts):
                tasks.start_soon(one, i, k)
    return tuple(Group(problem, tuple(found[i, k] for k in range(rollouts))) for i, problem in enumerate(problems))
