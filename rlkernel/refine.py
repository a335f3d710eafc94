"""Test-time scaling: many turns on one problem, with a choice of which earlier turns the policy is shown (arXiv 2602.05885).

As `rlkernel.rollout`, except that the context is put together anew for every turn: the prompt, then the chosen earlier answers,
each with the feedback that it got.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from rlkernel.errors import UsageError
from rlkernel.interfaces import Environment, Evaluator, Policy, Reward
from rlkernel.returned import reward_of
from rlkernel.rollout import concurrent_groups, derive_seed
from rlkernel.types import Group, Problem, Trajectory, Turn


class Context(Protocol):
    """Chooses which earlier turns are shown: from their rewards in order to ascending positions. Implementations are frozen
    dataclasses."""

    def __call__(self, rewards: Sequence[float]) -> tuple[int, ...]: ...


async def refine(
    problem: Problem,
    policy: Policy,
    evaluator: Evaluator,
    environment: Environment,
    reward: Reward,
    context: Context,
    turns: int,
    *,
    seed: int,
) -> Trajectory:
    """One trajectory of `turns` turns. It ends early when the chosen context leaves no room for another answer.

    A turn's `context_ids` are all that it was shown, so that the trajectory's tokens are not one sequence: it is for measuring,
    not for training. Raises UsageError when not even the prompt leaves room, and what the reward raises.
    """
    prompt_ids = policy.encode_prompt(environment.prompt(problem))
    done: list[Turn] = []
    exchanges: list[tuple[int, ...]] = []
    for turn in range(turns):
        shown = context([earlier.reward for earlier in done])
        context_ids = prompt_ids + tuple(token for i in shown for token in exchanges[i])
        completion = await policy.generate(context_ids, derive_seed(seed, turn))
        if completion is None:
            break
        code = environment.extract(completion.text)
        evaluation = await evaluator.evaluate(problem, code)
        feedback = environment.feedback(evaluation)
        done.append(Turn(context_ids, completion, code, evaluation, reward_of(reward, evaluation), feedback))
        answer = policy.encode_feedback(feedback, truncated=completion.stop == "length")
        exchanges.append(completion.token_ids + answer)
    if not done:
        raise UsageError(f"the prompt of {problem.name} leaves no room for a completion: lower max_new_tokens, or leave it out")
    return Trajectory(problem, tuple(done))


async def refine_groups(
    problems: Sequence[Problem],
    rollouts: int,
    policy: Policy,
    evaluator: Evaluator,
    environment: Environment,
    reward: Reward,
    context: Context,
    turns: int,
    *,
    seed: int,
) -> tuple[Group, ...]:
    """`rollouts` trajectories of every problem, as `concurrent_groups` has them: first turns are equal for every context."""

    async def one(problem: Problem, own: int) -> Trajectory:
        return await refine(problem, policy, evaluator, environment, reward, context, turns, seed=own)

    return await concurrent_groups(problems, rollouts, seed, one)


def until(groups: Sequence[Group], turn: int) -> tuple[Group, ...]:
    """The same trajectories as they were after `turn` turns, so that metrics read as the best of the history and the last turn
    there. One that ended earlier is as it ended."""
    return tuple(
        Group(group.problem, tuple(replace(trajectory, turns=trajectory.turns[:turn]) for trajectory in group.trajectories))
        for group in groups
    )
