"""Modelled against measured time: ratios, their order, and which candidates of the red team are asked."""

import pytest

from benchmarks.corpus import Case, corpus
from benchmarks.drive import Done
from benchmarks.modelled_time import candidates, pairs
from rlkernel.types import Evaluation, Status


def verdict(candidate_us: float, reference_us: float, status: Status = Status.CORRECT) -> Evaluation:
    speedup = reference_us / candidate_us
    return Evaluation(status, "", speedup=speedup, candidate_us=candidate_us, reference_us=reference_us)


def done(case: Case, result: Evaluation | None) -> Done:
    return Done(case, result, "" if result else "broken", 0.0)


def test_a_ratio_is_modelled_by_measured_and_the_most_flattered_candidate_comes_first() -> None:
    first, second, wrong, broken = corpus(4)
    modelled = [verdict(10, 40), verdict(10, 80), verdict(10, 10, Status.INCORRECT), None]
    measured = [verdict(20, 40), verdict(40, 40), verdict(10, 10), verdict(10, 10)]
    cases = (first, second, wrong, broken)
    found = pairs(
        [done(case, result) for case, result in zip(cases, modelled, strict=True)],
        [done(case, result) for case, result in zip(reversed(cases), reversed(measured), strict=True)],
    )
    assert [pair.case for pair in found] == [second, first]
    # 8 modelled against 1 measured, and 4 against 2.
    assert [pair.ratio("speedup") for pair in found] == pytest.approx([8.0, 2.0])
    assert [pair.ratio("candidate_us") for pair in found] == pytest.approx([0.25, 0.5])
    assert found[0].to_json()["measured_reference_us"] == 40


def test_the_red_team_is_asked_where_it_is_right_on_both_paths() -> None:
    names = {case.name for case in candidates(2, 0, with_red_team=True)}
    assert "hostile/recurrence_without_latency" in names  # right, and slow
    assert "hostile/abort" not in names  # never right
    assert len(candidates(2, 0, with_red_team=False)) == 2
