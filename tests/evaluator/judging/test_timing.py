"""When timing stops and what it says: by hand, and over random times."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator.judging.timing import (
    BUSY_SECONDS,
    MAX_BATCH,
    MAX_TRIALS,
    MIN_TRIALS,
    SLOW_TRIALS,
    missing,
    quantile,
    relative_error,
    speedup,
    typical,
    undisturbed,
)

TIMES = st.lists(st.floats(1.0, 1e5), min_size=3, max_size=40)
LONG = st.lists(st.floats(10.0, 1e5), min_size=3, max_size=40)
"""Times of which the clock resolves a hundredth, so that no spread is too small for it."""


def test_the_typical_time_is_the_mean_without_what_is_far_from_the_median() -> None:
    # median 11.5, deviations 10.5 9.5 1.5 0.5 0.5 1.5 488.5 888.5: MAD 1.5 + 9.5 over 2 = 5.5, far is 4 x 1.4826 x 5.5 = 32.6
    assert undisturbed([1.0, 2.0, 10.0, 11.0, 12.0, 13.0, 500.0, 900.0]) == [1.0, 2.0, 10.0, 11.0, 12.0, 13.0]
    assert typical([1.0, 2.0, 10.0, 11.0, 12.0, 13.0, 500.0, 900.0]) == 49 / 6


def test_a_candidate_that_is_often_slow_does_not_lose_its_slow_runs() -> None:
    # three of eight are slow, and only a quarter may go
    assert undisturbed([10.0, 10.0, 10.0, 10.0, 10.0, 90.0, 90.0, 90.0]) == [10.0] * 5 + [90.0]
    # three of nine: a quarter is two
    assert undisturbed([10.0] * 6 + [90.0] * 3) == [10.0] * 6 + [90.0]


def test_among_equal_times_one_within_four_percent_is_not_disturbed() -> None:
    assert undisturbed([1000.0] * 5 + [1039.0]) == [1000.0] * 5 + [1039.0]
    assert undisturbed([1000.0] * 5 + [1041.0]) == [1000.0] * 5


def test_standard_error_by_hand() -> None:
    # deviations 2 1 0 1 2: variance (4 + 1 + 0 + 1 + 4) / 4 = 2.5; sqrt(2.5) / sqrt(5) = 0.7071 us of 100 us
    assert relative_error([98.0, 99.0, 100.0, 101.0, 102.0]) == pytest.approx(math.sqrt(0.5) / 100)


def test_speedup_by_hand() -> None:
    found = speedup([200.0] * 5, [100.0] * 5)
    # no spread, so the clock's resolution of 0.1 us counts; Student's t for 5 trials is 2.78
    reference, candidate = (0.1 / (math.sqrt(5) * us) for us in (200.0, 100.0))
    assert (found.value, found.reference_us, found.candidate_us, found.trials) == (2.0, 200.0, 100.0, 5)
    assert found.high == pytest.approx(2.0 * math.exp(2.78 * math.hypot(reference, candidate)))
    assert found.low * found.high == pytest.approx(4.0)
    assert found.reference_high_us == pytest.approx(200.0 * math.exp(2.78 * reference))
    assert found.reference_low_us * found.reference_high_us == pytest.approx(200.0**2)


def test_few_trials_need_more_certainty() -> None:
    assert [quantile(n) for n in (3, 5, 11, 26, 100)] == [4.3, 2.78, 2.23, 1.96, 1.96]


def test_stop_rule() -> None:
    steady, noisy = [100.0, 100.1, 99.9], [50.0, 100.0, 150.0]
    assert missing(steady, steady, 0.0) == MIN_TRIALS - 3, "too few, however steady"
    assert missing(steady * 2, steady * 2, 0.0) == 0
    assert missing(noisy * 4, noisy * 4, 0.0) == MAX_BATCH
    assert missing(noisy * 4, noisy * 4, BUSY_SECONDS) == 0
    assert missing(noisy * 4, noisy * 4, 0.0, width=1.0) == 0, "wide enough"
    assert missing(steady, steady, 0.0, width=1.0) == MIN_TRIALS - 3, "however wide"
    assert missing([50.0, 150.0] * (MAX_TRIALS // 2 + 1), [50.0, 150.0] * (MAX_TRIALS // 2 + 1), 0.0) == 0


def test_a_batch_is_what_the_interval_lacks() -> None:
    # variance (4 + 4 + 1 + 1) / 4 = 2.5, so 0.707 % for either side and 1 % for the ratio; times 2.78 is 2.82 %, 2.256 targets:
    # 0.9 x 5 x 2.256 ** 2 = 22.9 trials, 18 more, of which 8 at once
    times = [98.0, 99.0, 100.0, 101.0, 102.0]
    assert missing(times, times, 0.0) == 8
    # half the deviation of one side only: 0.354 % x 2.78 = 0.988 %, less than 1.25 %
    closer = [99.0, 99.5, 100.0, 100.5, 101.0]
    assert missing([100.0] * 5, closer, 0.0) == 0
    # both sides: 0.5 % x 2.78 = 1.40 %, 1.12 targets: 0.9 x 5 x 1.25 = 5.7, so 1 more
    assert missing(closer, closer, 0.0) == 1


def test_only_very_slow_forwards_are_timed_less_than_the_minimum() -> None:
    slow = [200_000.0] * SLOW_TRIALS  # 0.6 s in three trials
    assert SLOW_TRIALS < MIN_TRIALS
    assert missing([100.0] * SLOW_TRIALS, slow, 1.0) == 0
    assert missing([100.0] * SLOW_TRIALS, [1000.0] * SLOW_TRIALS, 1.0) > 0, "wall clock alone stops nothing early"


@given(LONG)
def test_the_interval_holds_the_value_and_scales_with_the_times(times: list[float]) -> None:
    found, doubled = speedup(times, times), speedup([2 * t for t in times], times)
    assert found.value == pytest.approx(1.0)
    assert found.low < found.value < found.high
    assert doubled.value == pytest.approx(2.0)
    assert found.reference_low_us < found.reference_us < found.reference_high_us


@given(TIMES, st.integers(0, 2))
def test_one_disturbed_trial_in_eight_moves_nothing_past_its_neighbours(times: list[float], place: int) -> None:
    several = times * 3
    several[place] = 1e9
    assert min(times) * (1 - 1e-12) <= typical(several) <= max(times) * (1 + 1e-12)
