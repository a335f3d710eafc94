"""Golden intervals and p values, with their arithmetic or their tables."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from rlkernel.statistics import (
    EXACT,
    POWER,
    Interval,
    bootstrap_interval,
    compare,
    detectable,
    holm,
    seeds_needed,
    sign_flip_test,
    student_interval,
    student_p,
    student_quantile,
)


@pytest.mark.parametrize(
    ("p", "degrees", "expected"),
    [
        # Any table of Student's t.
        (0.975, 1, 12.7062),
        (0.975, 2, 4.3027),
        (0.975, 3, 3.1824),
        (0.975, 4, 2.7764),
        (0.975, 9, 2.2622),
        (0.95, 2, 2.9200),
        (0.995, 5, 4.0321),
        (0.975, 120, 1.9799),
        (0.5, 7, 0.0),
    ],
)
def test_quantiles_of_student(p: float, degrees: int, expected: float) -> None:
    assert student_quantile(p, degrees) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("values", "p"), [([1.0, 2.0, 3.0], 0.07418), ([-0.4, 0.1, 0.2, 0.5, 0.6], 0.31943), ([1.0], None), ([1.0, 1.0], None)]
)
def test_students_p(values: list[float], p: float | None) -> None:
    # t = 3.4641 with 2 degrees; t = 0.2 / (0.39370 / sqrt(5)) = 1.13592 with 4.
    assert student_p(values) == (None if p is None else pytest.approx(p, abs=1e-4))
    interval = student_interval(values)
    if p is not None and interval is not None:
        assert (p < 0.05) == (not interval.low <= 0 <= interval.high)


@pytest.mark.parametrize(("p", "degrees"), [(0.4, 3), (1.0, 3), (0.9, 0)])
def test_other_quantiles_are_refused(p: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="p must be in"):
        student_quantile(p, degrees)


def test_interval_over_three_seeds() -> None:
    found = student_interval([0.1, 0.2, 0.6])
    assert found is not None
    # Mean 0.3, deviation sqrt((0.04 + 0.01 + 0.09) / 2) = 0.26458, half 4.3027 * 0.26458 / sqrt(3) = 0.65725.
    assert (found.mean, found.low, found.high) == pytest.approx((0.3, -0.35725, 0.95725), abs=1e-4)
    assert student_interval([0.1]) is None


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    intervals = [student_interval(row.tolist()) for row in generator.normal(1.0, 2.0, size=(4000, 3))]
    covered = sum(found is not None and found.low <= 1.0 <= found.high for found in intervals) / 4000
    # 95 % with a standard error of 0.34 %.
    assert 0.94 < covered < 0.96


def test_an_interval_is_cut_to_what_its_quantity_can_be() -> None:
    assert Interval(0.25, -2.93, 3.43).within((-1.0, 1.0)) == Interval(0.25, -1.0, 1.0)
    assert Interval(0.25, 0.1, 0.4).within((-1.0, 1.0)) == Interval(0.25, 0.1, 0.4)
    # Student over 0 and 0.5: half 12.7062 * 0.35355 / sqrt(2) = 3.1766.
    assert compare([0.0, 0.5], bounds=(-1.0, 1.0)).interval == Interval(0.25, -1.0, 1.0)
    free = compare([0.0, 0.5]).interval
    assert free is not None and (free.low, free.high) == pytest.approx((-2.9266, 3.4266), abs=1e-4)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        # (t_0.975 + t_0.8) * 0.1 / sqrt(n), of any table: 12.7062 + 1.3764 for n = 2, 3.1824 + 0.9785, 2.2622 + 0.8834.
        (2, 14.0826 * 0.1 / 2**0.5),
        (4, 4.1609 * 0.1 / 2),
        (10, 3.1456 * 0.1 / 10**0.5),
    ],
)
def test_the_detectable_difference_is_that_of_the_tables(count: int, expected: float) -> None:
    assert detectable(0.1, count) == pytest.approx(expected, rel=1e-4)


def test_a_detectable_difference_is_detected_as_often_as_it_says() -> None:
    draws = np.random.default_rng(0).normal(detectable(2.0, 6), 2.0, size=(4000, 6))
    found = [student_interval(row.tolist()) for row in draws]
    # 80 % with a standard error of 0.6 %; the formula is an approximation from below.
    assert POWER - 0.03 < sum(interval is not None and interval.low > 0 for interval in found) / 4000 < POWER + 0.02


def test_the_seeds_that_a_difference_needs_are_the_fewest() -> None:
    for difference in (0.05, 0.1, 0.3):
        count = seeds_needed(0.1, difference)
        assert count is not None and detectable(0.1, count) <= difference < detectable(0.1, count - 1)
    assert seeds_needed(0.0, 0.05) == 2
    assert seeds_needed(9.0, 0.05) is None
    with pytest.raises(ValueError, match="above 0"):
        seeds_needed(0.1, 0.0)
    with pytest.raises(ValueError, match="at least two"):
        detectable(0.1, 1)


def test_bootstrap_of_many_values_is_the_normal_interval() -> None:
    values_SP = np.random.default_rng(0).normal(0.0, 1.0, size=(1, 400))
    found = bootstrap_interval(values_SP)
    half = 1.96 * values_SP.std() / math.sqrt(400)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.05)
    assert found.mean == pytest.approx(float(values_SP.mean()))
    assert bootstrap_interval(values_SP) == found


def test_bootstrap_draws_seeds_and_problems() -> None:
    # Seeds differ, problems do not: three seeds at 0, 0 and 3; the mean of three draws is 3 with probability 1/27 > 2.5 %.
    seeds = bootstrap_interval(np.array([[0.0] * 5, [0.0] * 5, [3.0] * 5]))
    assert (seeds.mean, seeds.low, seeds.high) == (1.0, 0.0, pytest.approx(3.0))
    problems = bootstrap_interval(np.array([[0.0, 0.0, 3.0]] * 5))
    assert (problems.low, problems.high) == (0.0, pytest.approx(3.0))
    with pytest.raises(ValueError, match="at least one"):
        bootstrap_interval(np.zeros((0, 3)))


def test_sign_flips_are_enumerated() -> None:
    differences = [0.3, -0.1, 0.2, 0.4, 0.0, 0.25]
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in product((1, -1), repeat=6)]
    by_hand = sum(total >= abs(sum(differences)) - 1e-12 for total in sums) / 64
    assert sign_flip_test(differences) == by_hand
    # Thirteen problems that all improve: 2 of 8192.
    assert sign_flip_test([0.1] * 13) == 2 / 8192
    assert sign_flip_test([]) == sign_flip_test([0.0, 0.0]) == 1.0


def test_many_sign_flips_are_sampled_and_agree_with_the_normal_limit() -> None:
    differences = np.random.default_rng(3).normal(0.2, 1.0, size=EXACT + 30).tolist()
    z = abs(sum(differences)) / math.sqrt(sum(d * d for d in differences))
    assert sign_flip_test(differences) == pytest.approx(math.erfc(z / math.sqrt(2)), rel=0.1)


def test_holm_by_hand() -> None:
    # Ascending 0.005, 0.01, 0.03, 0.04: times 4, 3, 2, 1 = 0.02, 0.03, 0.06, 0.04; never descending.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.7, 0.6]) == (1.0, 1.0)
    assert holm([]) == ()


def test_a_comparison_says_what_it_knows() -> None:
    runs_only = compare([0.1, 0.3])
    assert (runs_only.mean, runs_only.seeds, runs_only.problems, runs_only.p, runs_only.bootstrap) == (0.2, 2, None, None, None)
    both = compare([0.2], np.array([[0.1, 0.2, 0.3]]))
    assert (both.interval, both.problems, both.p) == (None, 3, 0.25)
    assert both.bootstrap is not None and both.bootstrap.low > 0
    with pytest.raises(ValueError, match="nothing to compare"):
        compare([])
