"""Trajectories against a scripted policy and a scripted evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import pytest

from rlkernel.busy import Busy
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import UsageError, usage_error
from rlkernel.rollout import Course, derive_seed, go_on, rollout, rollout_groups
from rlkernel.settings import Stop
from rlkernel.training.meter import MeteredEvaluator
from rlkernel.types import Completion, Evaluation, Problem, Status, StopReason, Turn

pytestmark = pytest.mark.anyio

RELU = Problem("level1/relu", 1, "train", "")
GELU = Problem("level1/gelu", 1, "train", "")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class ScriptedPolicy:
    """Answers with the words of `script`, turn by turn; token ids are lengths. Refuses contexts longer than `room`."""

    script: Sequence[str]
    room: int = 10**9
    seeds: list[int] = field(default_factory=list)
    contexts: list[tuple[int, ...]] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    """The tokens of each answer, or part of one."""

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        return (100, len(text))

    def encode_feedback(self, text: str, truncated: bool = False) -> tuple[int, ...]:
        return (201 if truncated else 200, len(text))

    async def generate(
        self, prompt_ids: Sequence[int], seed: int, begun: Completion | None = None, tokens: int | None = None
    ) -> Completion | None:
        if len(prompt_ids) > self.room:
            return None
        self.seeds.append(seed)
        self.contexts.append(tuple(prompt_ids))
        turn = sum(token in (200, 201) for token in prompt_ids)
        text = self.script[turn]
        had = len(begun.token_ids) if begun else 0
        have = 3 if tokens is None else min(3, had + tokens)
        stop: StopReason = "paused" if have < 3 else "length" if text == "cut" else "stop"
        self.parts.append(have - had)
        return Completion((1, 2, 3)[:have], (-0.1, -0.2, -0.3)[:have], text, stop)


@dataclass(frozen=True)
class ScriptedEvaluator:
    """`fast` is correct at 2x, `slow` at 0.5x; no code is no code."""

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        if code is None:
            return Evaluation(Status.NO_CODE, "no code block")
        return Evaluation(Status.CORRECT, code, speedup={"fast": 2.0, "slow": 0.5}[code])


@dataclass(frozen=True)
class PlainEnvironment:
    def prompt(self, problem: Problem) -> str:
        return problem.name

    def extract(self, completion: str) -> str | None:
        return completion if completion in ("fast", "slow") else None

    def feedback(self, evaluation: Evaluation) -> str:
        return evaluation.detail


async def run(policy: ScriptedPolicy, turns: int) -> tuple[Turn, ...]:
    trajectory = await rollout(RELU, policy, ScriptedEvaluator(), PlainEnvironment(), SpeedReward(), turns, seed=0)
    assert trajectory.problem is RELU
    return trajectory.turns


async def test_turns_are_appended_and_rewarded() -> None:
    policy = ScriptedPolicy(["slow", "cut", "fast"])
    turns = await run(policy, 3)
    assert [turn.code for turn in turns] == ["slow", None, "fast"]
    # 0.5 + 0.5 * 0.5; no code; 0.5 + 0.5 * 2
    assert [turn.reward for turn in turns] == [0.75, 0.0, 1.5]
    assert [turn.feedback for turn in turns] == ["slow", "no code block", ""]
    # The prompt, then each feedback; the truncated second turn is closed.
    assert [turn.context_ids for turn in turns] == [(100, 11), (200, 4), (201, 13)]
    assert policy.contexts == [
        (100, 11),
        (100, 11, 1, 2, 3, 200, 4),
        (100, 11, 1, 2, 3, 200, 4, 1, 2, 3, 201, 13),
    ]


@pytest.mark.parametrize("tokens", [1, 2, 3, 4, 5, 8])
async def test_a_trajectory_in_parts_is_the_whole(tokens: int) -> None:
    """Three turns of three tokens each: 1 and 2 cut completions, 3 ends with them, 4 and 5 do both."""
    policy = ScriptedPolicy(["slow", "cut", "fast"])
    course, seen, parts = Course(), list[Turn](), 0
    while not course.over:
        before = sum(policy.parts)
        course = await go_on(
            RELU,
            course,
            policy,
            ScriptedEvaluator(),
            PlainEnvironment(),
            SpeedReward(),
            3,
            seed=0,
            on_turn=seen.append,
            tokens=tokens,
        )
        parts += 1
        assert sum(policy.parts) - before == (tokens if not course.over else 9 - (parts - 1) * tokens)
        assert course.begun is None or course.begun.stop == "paused"
    whole = ScriptedPolicy(["slow", "cut", "fast"])
    assert course.turns == await run(whole, 3) and course.begun is None
    assert parts == -(-9 // tokens) and len(seen) == 3
    # Every part of a turn is asked for with the turn's own context and seed; what was begun is no part of the context.
    assert list(dict.fromkeys(policy.contexts)) == whole.contexts and list(dict.fromkeys(policy.seeds)) == whole.seeds
    again = ScriptedPolicy([])
    assert course == await go_on(RELU, course, again, ScriptedEvaluator(), PlainEnvironment(), SpeedReward(), 3, seed=0, tokens=1)
    assert again.contexts == []


async def test_a_correct_turn_does_not_end_the_trajectory() -> None:
    assert len(await run(ScriptedPolicy(["fast", "fast", "slow"]), 3)) == 3


@pytest.mark.parametrize(
    ("stop", "turns"),
    [
        (Stop(), 3),
        (Stop(speedup=0.5), 1),
        (Stop(speedup=2.0), 2),
        (Stop(speedup=2.1), 3),
        (Stop(text="fas"), 2),
        (Stop(speedup=9.0, text="slow"), 1),
    ],
    ids=str,
)
async def test_a_trajectory_ends_where_it_is_told_to(stop: Stop, turns: int) -> None:
    """The answers are at 0.5 and twice at 2 times the reference."""
    policy, seen = ScriptedPolicy(["slow", "fast", "fast"]), list[Turn]()
    (group,) = await rollout_groups(
        [RELU], 2, policy, ScriptedEvaluator(), PlainEnvironment(), SpeedReward(), 3, seed=0, stop=stop, on_turn=seen.append
    )
    for trajectory in group.trajectories:
        assert [turn.code for turn in trajectory.turns] == ["slow", "fast", "fast"][:turns]
        # Nobody is shown the last feedback.
        assert [bool(turn.feedback) for turn in trajectory.turns] == [True] * (turns - 1) + [False]
    assert len(seen) == 2 * turns


def test_an_incorrect_answer_is_not_fast() -> None:
    turn = Turn((1,), Completion((2,), (-0.1,), "x", "stop"), "x", Evaluation(Status.INCORRECT, "", speedup=9.0), 0.0, "")
    assert not Stop(speedup=1.0)(turn) and Stop(text="x")(turn)
    with pytest.raises(UsageError, match=r"Stop\.speedup is 0: it must be a number above 0 or None"):
        Stop(speedup=0)


async def test_a_full_context_ends_the_trajectory_early() -> None:
    turns = await run(ScriptedPolicy(["slow", "fast", "fast"], room=7), 3)
    assert [turn.feedback for turn in turns] == ["slow", ""]


async def test_a_prompt_that_does_not_fit_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"prompt of level1/relu has 2 tokens.*lower max_new_tokens, leave the problem out, or"):
        await run(ScriptedPolicy(["slow"], room=1), 1)


async def test_each_turn_and_trajectory_has_its_own_seed() -> None:
    policy = ScriptedPolicy(["slow", "fast"])
    seen: list[Turn] = []
    groups = await rollout_groups(
        (RELU, GELU), 3, policy, ScriptedEvaluator(), PlainEnvironment(), SpeedReward(), 2, seed=5, on_turn=seen.append
    )
    assert [group.problem for group in groups] == [RELU, GELU]
    assert [len(group.trajectories) for group in groups] == [3, 3]
    assert len(seen) == 12
    assert len(set(policy.seeds)) == 12
    again = ScriptedPolicy(["slow", "fast"])
    await rollout_groups((RELU, GELU), 3, again, ScriptedEvaluator(), PlainEnvironment(), SpeedReward(), 2, seed=5)
    assert sorted(again.seeds) == sorted(policy.seeds)


def test_derived_seeds_fit_and_differ() -> None:
    assert derive_seed(1, "a") == derive_seed(1, "a")
    assert len({derive_seed(1, "a"), derive_seed("1a"), derive_seed(1, "a", 0), derive_seed(2, "a")}) == 4
    assert all(0 <= derive_seed(i) < 2**63 for i in range(100))


async def test_nobody_waits_for_a_sibling_between_turns() -> None:
    # The first evaluation is answered only after another trajectory has finished all its turns.
    finished = anyio.Event()
    first = True

    @dataclass(frozen=True)
    class Slow(ScriptedEvaluator):
        async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
            nonlocal first
            if first:
                first = False
                await finished.wait()
            return await ScriptedEvaluator.evaluate(self, problem, code)

    def on_turn(turn: Turn) -> None:
        if turn.code == "fast":
            finished.set()

    with anyio.fail_after(300):
        groups = await rollout_groups(
            (RELU,), 2, ScriptedPolicy(["slow", "fast"]), Slow(), PlainEnvironment(), SpeedReward(), 2, seed=0, on_turn=on_turn
        )
    assert [len(trajectory.turns) for trajectory in groups[0].trajectories] == [2, 2]


async def test_a_usage_error_is_found_inside_task_groups() -> None:
    with pytest.RaisesGroup(UsageError, flatten_subgroups=True) as caught:
        await rollout_groups(
            (RELU,), 1, ScriptedPolicy([], room=0), ScriptedEvaluator(), PlainEnvironment(), SpeedReward(), 1, seed=0
        )
    assert "leaves no room" in str(usage_error(caught.value))
    assert usage_error(ExceptionGroup("", [UsageError("a"), KeyError("b")])) is None


async def test_busy_time_counts_overlap_once() -> None:
    busy = Busy()
    metered = MeteredEvaluator(ScriptedEvaluator(), busy)
    assert busy.seconds == 0.0
    assert (await metered.evaluate(RELU, "fast")).speedup == 2.0
    once = busy.seconds
    assert once > 0.0
    with busy():
        with busy():
            assert busy.seconds > once
        inner = busy.seconds
    outer = busy.seconds
    assert inner <= outer == busy.seconds
