"""When timing stops and what it says: by hand, and over random times."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator.timing import (
    BUSY_SECONDS,
    MAX_TRIALS,
    MIN_TRIALS,
    SLOW_TRIALS,
    enough,
    quantile,
    relative_error,
    speedup,
    typical,
)

TIMES = st.lists(st.floats(1.0, 1e5), min_size=3, max_size=40)


def test_the_typical_time_is_the_mean_of_the_middle_half() -> None:
    # 8 values: the 2 smallest and the 2 largest are dropped
    assert typical([1.0, 2.0, 10.0, 11.0, 12.0, 13.0, 500.0, 900.0]) == (10 + 11 + 12 + 13) / 4


def test_standard_error_by_hand() -> None:
    # median 100, deviations 2 1 0 1 2 -> MAD 1, sigma 1.4826; 1.2533 * 1.4826 / sqrt(5) = 0.831 us of 100 us
    assert relative_error([98.0, 99.0, 100.0, 101.0, 102.0]) == pytest.approx(1.2533 * 1.4826 / math.sqrt(5) / 100)


def test_speedup_by_hand() -> None:
    found = speedup([200.0] * 5, [100.0] * 5)
    # no spread, so the clock's resolution of 0.1 us counts; Student's t for 5 trials is 2.78
    reference, candidate = (1.2533 * 0.1 / (math.sqrt(5) * us) for us in (200.0, 100.0))
    assert (found.value, found.reference_us, found.candidate_us, found.trials) == (2.0, 200.0, 100.0, 5)
    assert found.high == pytest.approx(2.0 * math.exp(2.78 * math.hypot(reference, candidate)))
    assert found.low * found.high == pytest.approx(4.0)


def test_few_trials_need_more_certainty() -> None:
    assert [quantile(n) for n in (3, 5, 11, 26, 100)] == [4.3, 2.78, 2.23, 1.96, 1.96]


def test_stop_rule() -> None:
    steady, noisy = [100.0, 100.1, 99.9], [50.0, 100.0, 150.0]
    assert not enough(steady, steady, 0.0), "too few, however steady"
    assert enough(steady * 2, steady * 2, 0.0)
    assert not enough(noisy * 4, noisy * 4, 0.0)
    assert enough(noisy * 4, noisy * 4, BUSY_SECONDS)
    assert enough([50.0, 150.0] * (MAX_TRIALS // 2 + 1), [50.0, 150.0] * (MAX_TRIALS // 2 + 1), 0.0)


def test_only_very_slow_forwards_are_timed_less_than_the_minimum() -> None:
    slow = [200_000.0] * SLOW_TRIALS  # 0.6 s in three trials
    assert SLOW_TRIALS < MIN_TRIALS
    assert enough([100.0] * SLOW_TRIALS, slow, 1.0)
    assert not enough([100.0] * SLOW_TRIALS, [1000.0] * SLOW_TRIALS, 1.0), "wall clock alone stops nothing early"


@given(TIMES)
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
