from __future__ import annotations

import pytest

from experiments.behaviour import KINDS, kind, render, repairs, shares
from rlkernel.types import Completion, Evaluation, Group, Problem, Status, Trajectory, Turn

PROBLEM = Problem("level2/chain", 2, "validation", "")


def turn(status: Status, speedup: float | None = None, reward: float = 0.0) -> Turn:
    completion = Completion((1,), (0.0,), "", "stop")
    return Turn((1,), completion, None, Evaluation(status, "", speedup=speedup), reward, "")


FAST, LAZY = turn(Status.CORRECT, 3.0, 2.0), turn(Status.CORRECT, 1.0, 1.0)
BROKEN, DECOY, WRONG = turn(Status.COMPILE_ERROR), turn(Status.NO_KERNEL, 1.0), turn(Status.INCORRECT, 4.0)
GROUPS = (
    Group(PROBLEM, (Trajectory(PROBLEM, (BROKEN, FAST)), Trajectory(PROBLEM, (LAZY, FAST)))),
    Group(PROBLEM, (Trajectory(PROBLEM, (BROKEN, WRONG)), Trajectory(PROBLEM, (DECOY, LAZY)))),
)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (FAST, "fast"),
        (turn(Status.CORRECT, 1.2), "fast"),
        (turn(Status.CORRECT, 1.15), "medium"),
        (LAZY, "lazy"),
        (DECOY, "no_kernel"),
        (WRONG, "incorrect"),
        (turn(Status.INVALID), "broken"),
    ],
)
def test_kinds(one: Turn, expected: str) -> None:
    assert kind(one) == expected


def test_shares_are_per_turn_and_sum_to_one() -> None:
    first, second = shares(GROUPS)
    assert (first["broken"], first["lazy"], first["no_kernel"], first["reward"]) == (0.5, 0.25, 0.25, 0.25)
    assert (second["fast"], second["incorrect"], second["lazy"], second["reward"]) == (0.5, 0.25, 0.25, 1.25)
    assert [sum(row[name] for name in KINDS) for row in (first, second)] == [1.0, 1.0]


def test_repairs_are_shares_of_what_follows() -> None:
    table = repairs(GROUPS)
    assert (table["broken"]["fast"], table["broken"]["incorrect"], table["lazy"]["fast"]) == (0.5, 0.5, 1.0)
    assert sum(table["fast"].values()) == 0.0


def test_the_text_has_a_line_per_turn_and_per_kind() -> None:
    lines = render(GROUPS).splitlines()
    assert len(lines) == 1 + 2 + 1 + len(KINDS)
    assert lines[1].split() == ["turn", "1", "0%", "0%", "25%", "25%", "0%", "50%", "0.25"]
