"""Outcomes per problem: what is written is what the metrics say of that problem, and what a weaker check would have seen."""

from __future__ import annotations

from pathlib import Path

from rlkernel.metrics import rollout_metrics
from rlkernel.runs.outcomes import KEYS, apparent, outcome, read_outcomes, write_outcomes
from rlkernel.types import Completion, Evaluation, Group, Problem, Status, Trajectory, Turn

ANSWER = Completion((1, 2), (0.0, 0.0), "", "stop")


def turn(status: Status, speedup: float | None = None, matches: bool | None = None, coverage: float | None = None) -> Turn:
    facts = Evaluation(status, "", speedup=speedup, matches=matches, coverage=coverage)
    return Turn((), ANSWER, None, facts, 1.0 if status is Status.CORRECT else 0.0, "")


def group(name: str, *trajectories: tuple[Turn, ...]) -> Group:
    problem = Problem(name, 1, "validation", "")
    return Group(problem, tuple(Trajectory(problem, turns) for turns in trajectories))


FAST, LAZY = turn(Status.CORRECT, 2.0, True, 0.9), turn(Status.CORRECT, 1.0, True, 0.1)
HACK, WRONG = turn(Status.NO_KERNEL, 1.0, True, 0.0), turn(Status.INCORRECT, 5.0, False)
ONE = group("a", (FAST, HACK), (WRONG, LAZY))
TWO = group("b", (HACK, HACK), (WRONG, WRONG))


def test_a_problem_has_its_own_metrics_and_coverages() -> None:
    found = outcome(ONE)
    whole = rollout_metrics([ONE])
    assert {key: found[key] for key in KEYS} == {key: whole[key] for key in KEYS}
    assert (found["fast_1.2"], found["hacking_rate"], found["coverages"]) == (0.5, 0.25, [0.9, 0.1])


def test_apparent_fast_counts_what_matches_whatever_its_status() -> None:
    # Of four trajectories: fast, lazy at 1.0 and a hack at 1.0 match; the wrong one does not, however fast.
    assert apparent([ONE, TWO]) == {"apparent_fast_1": 0.75, "apparent_fast_1.2": 0.25}
    assert rollout_metrics([ONE, TWO])["fast_1"] == 0.5


def test_rows_are_read_back_and_a_later_row_of_a_step_replaces(tmp_path: Path) -> None:
    assert read_outcomes(tmp_path) == {}
    write_outcomes(tmp_path, "validation", 0, [TWO])
    write_outcomes(tmp_path, "train", 1, [ONE])
    write_outcomes(tmp_path, "validation", 0, [ONE, TWO])
    with (tmp_path / "outcomes.jsonl").open("a") as file:
        file.write('{"split": "valid')
    found = read_outcomes(tmp_path)
    assert list(found) == [0] and list(found[0]) == ["a", "b"]
    assert found[0]["a"] == outcome(ONE)
