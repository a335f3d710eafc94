"""Metrics of a set of trajectories, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from rlkernel.metrics import rollout_metrics
from rlkernel.types import Completion, Evaluation, Group, Oracle, Problem, Status, Trajectory, Turn

PROBLEM = Problem("p", 1, "train", "")


def turn(status: Status, reward: float, speedup: float | None = None, tokens: int = 4, **facts: Any) -> Turn:
    stop = facts.pop("stop", "stop")
    completion = Completion((1,) * tokens, (0.0,) * tokens, "text", stop)
    return Turn((), completion, "code", Evaluation(status, "", speedup=speedup, **facts), reward, "")


def trajectory(*turns: Turn) -> Trajectory:
    return Trajectory(PROBLEM, turns)


LAZY = turn(Status.CORRECT, 1.0, speedup=1.0, coverage=0.1)
FAST = turn(Status.CORRECT, 1.25, speedup=1.5, coverage=0.9, tokens=8, cached=True)
HACK = turn(Status.NO_KERNEL, 0.0, speedup=9.0)
WRONG = turn(Status.INCORRECT, 0.0, tokens=12, stop="length")
GROUPS = (
    Group(PROBLEM, (trajectory(HACK, LAZY), trajectory(FAST, WRONG))),
    Group(PROBLEM, (trajectory(WRONG), trajectory(HACK, HACK))),
)


def test_metrics_by_hand() -> None:
    found = rollout_metrics(GROUPS)
    # Turns: HACK LAZY | FAST WRONG | WRONG | HACK HACK: seven.
    expected = {
        "reward": 2.25 / 7,
        "reward_best": (1.0 + 1.25 + 0 + 0) / 4,
        "reward_last": 1.0 / 4,
        "reward_turn_1": 1.25 / 4,
        "reward_turn_2": 1.0 / 3,
        "fast_1": 2 / 4,
        "fast_1.2": 1 / 4,
        "fast_1_last": 1 / 4,
        "fast_1.2_last": 0 / 4,
        "fast_1_turn_1": 1 / 4,
        "fast_1_turn_2": 1 / 3,
        "fast_1.2_turn_1": 1 / 4,
        "fast_1.2_turn_2": 0 / 3,
        "correct_rate": 2 / 7,
        "hacking_rate": 3 / 7,
        "lazy_rate": 1 / 7,
        "status_correct": 2 / 7,
        "status_no_kernel": 3 / 7,
        "status_incorrect": 2 / 7,
        # LAZY 0.1, FAST 0.9
        "coverage": 1.0 / 7,
        "completion_length": (4 + 4 + 8 + 12 + 12 + 4 + 4) / 7,
        "truncated_rate": 2 / 7,
        "turns": 7 / 4,
        "evaluations": 7,
        "cache_hit_rate": 1 / 7,
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    others = {key: value for key, value in found.items() if key not in expected}
    assert others == {f"status_{status}": 0.0 for status in Status if f"status_{status}" not in expected}
    assert sum(found[f"status_{status}"] for status in Status) == pytest.approx(1.0)


def test_inconsistent_work_is_a_hack_and_unknown_coverage_is_not_lazy() -> None:
    found = rollout_metrics(
        [Group(PROBLEM, (trajectory(turn(Status.INCONSISTENT, 0.0)), trajectory(turn(Status.CORRECT, 1.0, 1.1))))]
    )
    assert (found["hacking_rate"], found["lazy_rate"]) == (0.5, 0.0)


def test_nothing_cannot_be_measured() -> None:
    with pytest.raises(ValueError, match="no trajectory"):
        rollout_metrics([])


def test_the_fraction_of_the_oracle_by_hand() -> None:
    """The oracle is 4, so a speedup of 2 is log 2 / log 4 = 1/2 of it, and 8 is 3/2. What is wrong or slower than 1 counts 0."""
    known = Problem("p", 1, "train", "", (Oracle("H200", "measured", 4.0), Oracle("h200", "modelled", 16.0)))
    two, eight, slow = (turn(Status.CORRECT, 1.0, s, timing="measured") for s in (2.0, 8.0, 0.5))
    wrong = turn(Status.INCORRECT, 0.0, 8.0)
    group = Group(known, (Trajectory(known, (two, wrong)), Trajectory(known, (slow, eight)), Trajectory(known, (wrong,))))
    found = rollout_metrics([group])
    assert found["oracle_fraction"] == pytest.approx((0.5 + 1.5 + 0.0) / 3)
    assert found["oracle_fraction_last"] == pytest.approx((0.0 + 1.5 + 0.0) / 3)
    assert found["oracle_fraction_turn_1"] == pytest.approx(0.5 / 3)
    assert found["oracle_fraction_turn_2"] == pytest.approx((0.0 + 1.5) / 2)
    modelled = Trajectory(known, (turn(Status.CORRECT, 1.0, 4.0, timing="modelled"),))
    assert rollout_metrics([Group(known, (modelled,))])["oracle_fraction"] == pytest.approx(0.5)


def test_problems_without_an_oracle_or_without_anything_to_gain_have_no_fraction() -> None:
    nothing = Problem("p", 1, "train", "", (Oracle("H200", "measured", 1.02),))
    fast = turn(Status.CORRECT, 1.0, 2.0, timing="measured")
    for problem in (PROBLEM, nothing):
        found = rollout_metrics([Group(problem, (Trajectory(problem, (fast,)),))])
        assert not any(key.startswith("oracle") for key in found)
    both = [Group(PROBLEM, (Trajectory(PROBLEM, (fast,)),)), Group(nothing, (Trajectory(nothing, (fast,)),))]
    known = Problem("q", 1, "train", "", (Oracle("H200", "measured", 2.0),))
    assert rollout_metrics([*both, Group(known, (Trajectory(known, (fast,)),))])["oracle_fraction"] == pytest.approx(1.0)
