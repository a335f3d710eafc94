"""Which problems are drawn: golden draws, shares, and that a history read from a checkpoint gives the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from algorithms.by_level import ByLevel
from algorithms.by_solve_rate import BySolveRate
from algorithms.dynamic_sampling import DynamicSampling
from algorithms.held_out import HeldOut
from rlkernel.errors import UsageError
from rlkernel.history import Drawn, History
from rlkernel.interfaces import Sampler
from rlkernel.training.draws import Draws
from rlkernel.types import Completion, Evaluation, Group, Problem, Status, Trajectory, Turn
from rlkernel.uniform import Uniform

PROBLEMS = [Problem(f"p{i}", 1 + i % 2, "train", "") for i in range(10)]


def group(problem: Problem, rewards: Sequence[Sequence[float]]) -> Group:
    """A group with these rewards, per trajectory and turn; a positive one is correct."""

    def turn(reward: float) -> Turn:
        facts = Evaluation(Status.CORRECT if reward > 0 else Status.INCORRECT, "")
        return Turn((), Completion((), (), "", "stop"), None, facts, reward, "")

    return Group(problem, tuple(Trajectory(problem, tuple(map(turn, of))) for of in rewards))


def drawn(
    sampler: Sampler, steps: int, count: int, *, flat: Sequence[str] = (), seed: int = 3, problems: Sequence[Problem] = PROBLEMS
) -> list[list[str]]:
    """The problems that each step trains. flat: problems whose rewards are all equal; the others have a solve rate of 1/2."""
    draws = Draws(problems, sampler, count, seed, None)

    async def sample(problems: Sequence[Problem], number: int) -> tuple[Group, ...]:
        return tuple(group(p, [[0.0], [0.0]] if p.name in flat else [[0.0], [1.0]]) for p in problems)

    async def run() -> list[list[str]]:
        return [[g.problem.name for g in await draws.batch(step, sample)] for step in range(steps)]

    return anyio.run(run)


def test_every_problem_once_per_pass() -> None:
    steps = drawn(Uniform(), 25, 4)
    assert all(len(set(step)) == 4 for step in steps)
    # 25 steps of 4 are 10 passes over 10 problems.
    assert Counter(name for step in steps for name in step) == dict.fromkeys((p.name for p in PROBLEMS), 10)
    for count in (5, 10):  # passes end with a step
        first = drawn(Uniform(), 10 // count, count)
        assert sorted(name for step in first for name in step) == sorted(p.name for p in PROBLEMS)
    assert drawn(Uniform(), 5, 4) == drawn(Uniform(), 9, 4)[:5] != drawn(Uniform(), 5, 4, seed=4)


def test_the_order_is_that_of_a_seeded_permutation() -> None:
    order = random.Random(3).sample(range(10), 10)
    assert [int(name[1:]) for step in drawn(Uniform(), 2, 5) for name in step] == order


def test_shares_of_levels() -> None:
    steps = drawn(ByLevel(shares=(3.0, 1.0)), 400, 2)
    levels = Counter(1 + int(name[1:]) % 2 for step in steps for name in step)
    assert 0.70 < levels[1] / 800 < 0.80  # expected 3/4, with a deviation of 0.015
    counts = Counter(name for step in steps for name in step)
    of_level_2 = [counts[f"p{i}"] for i in (1, 3, 5, 7, 9)]
    assert max(of_level_2) - min(of_level_2) <= 1  # inside a level each as often
    # Level 1 has five problems; the other places of eight go to problems whose level has no share.
    step = drawn(ByLevel(shares=(1.0,)), 1, 8)[0]
    assert {"p0", "p2", "p4", "p6", "p8"} < set(step) and len(set(step)) == 8


def test_too_easy_and_too_hard_problems_are_seldom() -> None:
    sampler = BySolveRate(low=0.1, high=0.9, seldom=0.1, window=2)
    rates = {"p0": [0.5, 0.0, 0.0], "p1": [0.0, 1.0, 1.0], "p2": [0.0, 0.0, 0.5]}
    history = History(tuple(Drawn(name, k, rate) for name, own in rates.items() for k, rate in enumerate(own)))
    assert history.rates(2) == {"p0": 0.0, "p1": 1.0, "p2": 0.25}
    assert [sampler.weight(history.rates(2).get(name)) for name in ("p0", "p1", "p2", "p3")] == [0.1, 0.1, 1.0, 1.0]
    counts = Counter(i for seed in range(2000) for i in sampler(PROBLEMS, history, 1, seed, frozenset()))
    # Weights 0.1, 0.1 and eight times 1: 8.2 in all.
    assert counts[0] / 2000 == pytest.approx(0.1 / 8.2, abs=0.01) and counts[2] / 2000 == pytest.approx(1 / 8.2, abs=0.03)


@pytest.mark.parametrize("seldom", [0.1, 1e-6, 1e-300])
def test_problems_that_are_all_seldom_are_drawn_equally_often(seldom: float) -> None:
    history = History(tuple(Drawn(problem.name, 0, 0.0) for problem in PROBLEMS))
    counts = Counter(i for seed in range(2000) for i in BySolveRate(seldom=seldom)(PROBLEMS, history, 1, seed, frozenset()))
    assert all(counts[i] / 2000 == pytest.approx(1 / len(PROBLEMS), abs=0.03) for i in range(len(PROBLEMS)))


def test_groups_without_spread_are_drawn_again() -> None:
    flat = [f"p{i}" for i in range(10) if i % 2]
    assert all(not set(step) & set(flat) for step in drawn(DynamicSampling(rounds=10), 5, 4, flat=flat))
    # One round keeps nothing out; those without spread come last in the batch.
    once = drawn(DynamicSampling(rounds=1), 5, 4, flat=flat)
    assert [sorted(step) for step in once] == [sorted(step) for step in drawn(Uniform(), 5, 4)]
    assert all([name in flat for name in step] == sorted(name in flat for name in step) for step in once)
    # Where all are flat, the last that were drawn fill the batch.
    everything = [p.name for p in PROBLEMS]
    assert drawn(DynamicSampling(rounds=2), 1, 4, flat=everything) == drawn(Uniform(), 2, 4)[1:]


def test_what_is_held_out_is_never_drawn_and_the_others_as_if_they_were_alone() -> None:
    steps = drawn(HeldOut(("3",)), 18, 4)
    assert all(len(set(step)) == 4 for step in steps)
    # 18 steps of 4 are 8 passes over the 9 others.
    assert Counter(name for step in steps for name in step) == dict.fromkeys((p.name for p in PROBLEMS if p.name != "p3"), 8)
    order = random.Random(3).sample(range(9), 9)
    alone = [p.name for p in PROBLEMS if p.name != "p3"]
    assert [name for step in steps for name in step][:9] == [alone[place] for place in order]


def test_what_is_held_out_stays_so_where_groups_are_drawn_again() -> None:
    flat = [p.name for p in PROBLEMS[1:5]]
    sampler = DynamicSampling(HeldOut(("p0",)), rounds=3)
    # Three rounds draw 4, and up to 4 and 4 more, of nine problems of which five have spread.
    assert all(len(set(step)) == 3 and not set(step) & {"p0", *flat} for step in drawn(sampler, 4, 3, flat=flat))
    # Four rounds draw 4, 4 and the last of nine, and nothing; the last four that were drawn fill the batch.
    everything = [p.name for p in PROBLEMS]
    (step,) = drawn(DynamicSampling(HeldOut(("p0",)), rounds=5), 1, 4, flat=everything)
    (alone,) = drawn(DynamicSampling(rounds=5), 1, 4, flat=everything, problems=PROBLEMS[1:])
    assert step == alone


def test_too_few_problems_are_left() -> None:
    with pytest.raises(UsageError, match=r"^HeldOut.parts is \('q',\): no problem's name contains any of these"):
        drawn(HeldOut(("q",)), 1, 1)
    with pytest.raises(UsageError, match=r"^HeldOut.parts is \('p1', '2'\): 8 problems are left, and a step has 9$"):
        drawn(HeldOut(("p1", "2")), 1, 9)
    for parts in ("p", ("",), ["p"]):
        with pytest.raises(UsageError, match=r"^HeldOut.parts is .*: give a tuple of parts of the names"):
            HeldOut(parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rewards", "kept"),
    [
        ([[1.0, 0.5], [1.0, 0.5]], False),
        ([[1.0, 0.5], [1.0, 0.7]], True),
        ([[1.0], [1.0, 0.5]], False),  # only one reached the second turn
        ([[0.5, 1.0], [1.0, 0.5]], True),  # equal in sum, but not turn by turn
    ],
)
def test_spread_is_seen_at_each_turn(rewards: list[list[float]], kept: bool) -> None:
    assert DynamicSampling().keeps(group(PROBLEMS[0], rewards)) is kept


@pytest.mark.parametrize("sampler", [Uniform(), ByLevel(), BySolveRate(), DynamicSampling(inner=BySolveRate()), HeldOut(("3",))])
def test_a_resumed_run_draws_what_it_would_have_drawn(sampler: Sampler, tmp_path: Path) -> None:
    async def sample(problems: Sequence[Problem], number: int) -> tuple[Group, ...]:
        return tuple(group(p, [[0.0], [float(int(p.name[1:]) % 3)]]) for p in problems)

    async def run() -> None:
        draws = Draws(PROBLEMS, sampler, 3, 7, None)
        for step in range(6):
            await draws.batch(step, sample)
        draws.write(tmp_path)
        again = Draws(PROBLEMS, sampler, 3, 7, tmp_path)
        assert again.history == draws.history
        for step in range(6, 12):
            names = [[g.problem.name for g in await one.batch(step, sample)] for one in (draws, again)]
            assert names[0] == names[1]

    anyio.run(run)


def test_more_prompts_per_step_than_problems() -> None:
    with pytest.raises(UsageError, match=r"prompts_per_step is 11, but there are 10 training problems: lower it"):
        Draws(PROBLEMS, Uniform(), 11, 0, None)
