"""Numbers of a benchmark: golden values with their arithmetic, and properties."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.benchmark.scores import THRESHOLDS, after_turn, counted_turn, fast, pass_at, ratio, reaches, score, speedup_over
from rlkernel.statistics import Interval
from rlkernel.types import Evaluation, Status


def good(speedup: float | None, compiled_us: float | None = None, coverage: float = 0.9) -> Evaluation:
    """The candidate takes 10 us."""
    return Evaluation(Status.CORRECT, "", speedup=speedup, candidate_us=10.0, compiled_us=compiled_us, coverage=coverage)


def bad(status: Status = Status.INCORRECT) -> Evaluation:
    # A hack is fast and matches; it counts as incorrect all the same.
    return Evaluation(status, "", matches=True, speedup=9.0, candidate_us=1.0)


TRIED = {
    "a": [[good(1.0), good(3.0), good(2.0)], [bad(), bad(Status.NO_KERNEL), bad()]],
    "b": [[good(0.5), good(1.2), bad()], [good(1.2), good(1.2), good(1.0, coverage=0.1)]],
}


@pytest.mark.parametrize(
    ("p", "reading", "strict", "expected"),
    [
        # best of a: 3.0 and none; of b: 1.2 and 1.2
        (0.0, "best", False, (1 / 2 + 2 / 2) / 2),
        (0.0, "best", True, (1 / 2 + 2 / 2) / 2),
        (1.2, "best", False, (1 / 2 + 2 / 2) / 2),
        (1.2, "best", True, (1 / 2 + 0 / 2) / 2),
        (2.0, "best", False, (1 / 2 + 0 / 2) / 2),
        # last of a: 2.0 and none; of b: none and 1.0
        (1.0, "last", False, (1 / 2 + 1 / 2) / 2),
        (1.0, "last", True, (1 / 2 + 0 / 2) / 2),
        (2.0, "last", True, 0.0),
    ],
)
def test_fast(p: float, reading: Any, strict: bool, expected: float) -> None:
    assert fast(TRIED, p, reading, strict=strict).mean == pytest.approx(expected)


def test_scores() -> None:
    found = score(TRIED)
    assert (found.problems, found.samples, found.turns) == (2, 4, 12)
    # best speedups: a 3.0; b 1.2, 1.2. last: a 2.0; b 1.0
    best, last = (found.eager.geometric_mean[reading] for reading in ("best", "last"))
    assert best is not None and best.mean == pytest.approx((3.0 * 1.2 * 1.2) ** (1 / 3))
    assert last is not None and last.mean == pytest.approx(math.sqrt(2.0))
    assert found.correct_rate.mean == pytest.approx(8 / 12)
    assert found.hacking_rate.mean == pytest.approx(1 / 12)
    assert found.lazy_rate.mean == pytest.approx(1 / 12)
    assert found.statuses == {"correct": 8, "incorrect": 3, "no_kernel": 1}
    # a: 1 of 2 samples, b: 2 of 2
    assert {k: v.mean for k, v in found.pass_at.items()} == {1: 0.75, 2: 1.0}
    assert found.compiled is None


def test_a_second_baseline_chooses_its_own_best_turn_and_leaves_out_what_it_did_not_compile() -> None:
    tried = {"a": [[good(2.0, compiled_us=9.0), good(1.5, compiled_us=14.0)]], "b": [[good(2.0)]], "c": [[bad()]]}
    found = score(tried)
    assert found.compiled is not None and found.compiled.problems == 2  # not b
    # a: 14 us / 10 us; c: a failure
    assert found.compiled.fast["best"][1.2].at_least.mean == pytest.approx(1 / 2)
    assert found.compiled.fast["best"][1.5].at_least.mean == 0.0
    assert speedup_over(tried["a"][0][0], "compiled") == pytest.approx(0.9)


def test_nothing_correct_has_no_geometric_mean() -> None:
    found = score({"a": [[bad()]]})
    assert found.eager.geometric_mean == {"best": None, "last": None}
    assert found.eager.fast["best"][0.0].at_least.mean == 0.0


@pytest.mark.parametrize("tried", [{}, {"a": []}, {"a": [[]]}])
def test_nothing_to_score_raises(tried: Any) -> None:
    with pytest.raises(ValueError, match="nothing to score"):
        score(tried)


def test_until_keeps_what_was_there_after_some_turns() -> None:
    assert [fast(after_turn(TRIED, t), 2.0, "best").mean for t in (1, 2, 3)] == [0.0, 0.25, 0.25]
    assert fast(after_turn(TRIED, 1), 1.0, "last").mean == fast(after_turn(TRIED, 1), 1.0, "best").mean


@given(n=st.integers(1, 8), data=st.data())
def test_pass_at_is_the_share_of_draws_with_a_correct_sample(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_at(k, n, c) == pytest.approx(sum(map(any, draws)) / len(draws))


@pytest.mark.parametrize(("k", "n", "c"), [(0, 1, 0), (2, 1, 0), (1, 1, 2), (1, 2, -1)])
def test_pass_at_refuses_what_has_no_meaning(k: int, n: int, c: int) -> None:
    with pytest.raises(ValueError, match="pass_at"):
        pass_at(k, n, c)


evaluations = st.one_of(
    st.floats(0.1, 10.0).map(good), st.just(good(None)), st.sampled_from([Status.INCORRECT, Status.CRASH]).map(bad)
)
tried_ones = st.dictionaries(
    st.sampled_from("abcd"), st.lists(st.lists(evaluations, min_size=1, max_size=3), min_size=1, max_size=3), min_size=1
)


@given(tried_ones)
def test_relations_between_the_numbers(tried: dict[str, list[list[Evaluation]]]) -> None:
    found = score(tried)
    for reading in ("best", "last"):
        values = [found.eager.fast[reading][p] for p in THRESHOLDS]
        assert all(v.more_than.mean <= v.at_least.mean for v in values)
        assert all(high.at_least.mean <= low.at_least.mean for low, high in itertools.pairwise(values))
    for p in THRESHOLDS:
        best, last = (found.eager.fast[reading][p].at_least for reading in ("best", "last"))
        assert last.mean <= best.mean
        assert best.low <= best.mean + 1e-9 and best.mean <= best.high + 1e-9
    passes = [interval.mean for interval in found.pass_at.values()]
    assert passes == sorted(passes)
    if all(len(samples) == 1 for samples in tried.values()):
        assert passes == [found.eager.fast["best"][0.0].at_least.mean]


def test_the_fastest_turn_counts_and_one_without_a_time_only_for_correctness() -> None:
    assert counted_turn([good(1.0), good(None), good(2.0)], "best", "eager") == good(2.0)
    assert reaches(good(None), 0.0, "eager", strict=True) and not reaches(good(None), 0.8, "eager", strict=False)
    assert not reaches(None, 0.0, "eager", strict=False)


def test_an_interval_over_problems() -> None:
    # 100 problems, half of them 1: the standard error is 0.05, and 1.96 of them are 0.098.
    found = ratio([0.0, 1.0] * 50, [1.0] * 100)
    assert found is not None and found.mean == 0.5
    assert found.low == pytest.approx(0.402, abs=0.012) and found.high == pytest.approx(0.598, abs=0.012)
    assert ratio([3.0], [4.0]) == Interval(0.75, 0.75, 0.75)
    assert ratio([0.0, 0.0], [0.0, 0.0]) is None
