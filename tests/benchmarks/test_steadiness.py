"""Verdicts again and again: the copies of a candidate, and which candidates had a wrong verdict."""

from __future__ import annotations

from benchmarks.corpus import Case
from benchmarks.drive import Done
from benchmarks.steadiness import Unsteady, copies, unsteady
from rlkernel.types import Evaluation, Status
from tests.red_team import cases as red_team

RELU = {"relu": red_team.relu()}
ONE = red_team.parse("honest/one", "# relu correct: a relu\n", RELU)
OTHER = red_team.parse("hostile/other", "# relu incorrect cpu=incorrect|implausible catalogue=51: half of one\n", RELU)


def test_each_copy_is_another_text() -> None:
    made = copies([ONE, OTHER], 3)
    assert [case.name for case in made[:3]] == ["honest/one copy 0", "hostile/other copy 0", "honest/one copy 1"]
    assert len({case.code for case in made}) == 6


def test_who_had_a_wrong_verdict_is_unsteady() -> None:
    """Two of three are right; `implausible` is a verdict that the other one's first line allows."""

    def done(case: red_team.Case, *statuses: Status) -> list[Done]:
        named = (Case(case.problem, f"{case.name} copy {number}", "") for number in range(len(statuses)))
        return [Done(one, Evaluation(status, "off"), "", 0.0) for one, status in zip(named, statuses, strict=True)]

    rows = done(ONE, Status.CORRECT, Status.INCORRECT, Status.CORRECT) + done(OTHER, Status.IMPLAUSIBLE, Status.INCORRECT)
    found = unsteady([ONE, OTHER], rows, "cpu")
    assert found == [Unsteady("honest/one", ("correct",), {"correct": 2, "incorrect": 1}, "off")]
    assert [one.name for one in unsteady([OTHER], rows, "gpu")] == ["hostile/other"]
