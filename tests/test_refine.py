"""Many turns with a chosen context, with a scripted policy and evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import pytest

from algorithms.contexts import FullHistory, TopTurns
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import UsageError
from rlkernel.refine import Context, refine, refine_groups, until
from rlkernel.types import Completion, Evaluation, Problem, Status, Trajectory

PROBLEM = Problem("level1/x", 1, "validation", "")
SPEEDUPS = (1.0, None, 3.0, 2.0)
"""The speedups of the turns; None is a failure."""


@dataclass
class ScriptedPolicy:
    """Prompt [0]; answer n is [10 + n], feedback to it [100]; a context of more than `room` tokens is refused."""

    room: int = 100
    contexts: list[tuple[int, ...]] = field(default_factory=list)

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        return (0,)

    def encode_feedback(self, text: str, truncated: bool = False) -> tuple[int, ...]:
        return (100,)

    async def generate(
        self, prompt_ids: Sequence[int], seed: int, begun: Completion | None = None, tokens: int | None = None
    ) -> Completion | None:
        if len(prompt_ids) > self.room:
            return None
        self.contexts.append(tuple(prompt_ids))
        number = len(self.contexts) - 1
        return Completion((10 + number,), (0.0,), str(number), "stop")


class Scripted:
    """Environment and evaluator: the answer's text is its number."""

    def prompt(self, problem: Problem) -> str:
        return problem.name

    def extract(self, completion: str) -> str | None:
        return completion

    def feedback(self, evaluation: Evaluation) -> str:
        return str(evaluation.status)

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        speedup = SPEEDUPS[int(code or 0)]
        return Evaluation(Status.CORRECT if speedup else Status.INCORRECT, "", speedup=speedup)


def run(context: Context, turns: int, policy: ScriptedPolicy) -> Trajectory:
    async def body() -> Trajectory:
        return await refine(PROBLEM, policy, Scripted(), Scripted(), SpeedReward(), context, turns, seed=0)

    return anyio.run(body)


def test_a_turn_sees_the_prompt_and_the_chosen_exchanges() -> None:
    policy = ScriptedPolicy()
    found = run(TopTurns(count=2), 4, policy)
    # Rewards 1, 0, 2: before the fourth turn, answers 0 and 2 are the best two.
    assert policy.contexts == [(0,), (0, 10, 100), (0, 10, 100, 11, 100), (0, 10, 100, 12, 100)]
    assert [turn.reward for turn in found.turns] == [1.0, 0.0, 2.0, 1.5]
    assert found.turns[3].context_ids == (0, 10, 100, 12, 100)


def test_a_full_context_ends_the_trajectory_and_a_chosen_one_goes_on() -> None:
    assert len(run(FullHistory(), 4, ScriptedPolicy(room=5)).turns) == 3
    assert len(run(TopTurns(count=2), 4, ScriptedPolicy(room=5)).turns) == 4


def test_a_prompt_without_room_is_one_line() -> None:
    with pytest.raises(UsageError, match="level1/x leaves no room"):
        run(FullHistory(), 4, ScriptedPolicy(room=0))


def test_until_is_the_history_so_far() -> None:
    async def body() -> None:
        policy = ScriptedPolicy()
        groups = await refine_groups([PROBLEM], 1, policy, Scripted(), Scripted(), SpeedReward(), FullHistory(), 4, seed=0)
        (group,) = until(groups, 2)
        assert [turn.reward for turn in group.trajectories[0].turns] == [1.0, 0.0]
        assert until(groups, 9) == groups

    anyio.run(body)
