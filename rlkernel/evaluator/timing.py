"""When enough timed runs were made, and what they say. Pure; the runs themselves are made by `runner/stopwatch.py`.

Every trial times the candidate and the reference once, on inputs of its own. The speedup is the ratio of the interquartile means,
which a few disturbed trials do not move, and which resolve more than the clock's ticks. Its interval comes from a median's
standard error, which is a little larger, with the spread measured by the median absolute deviation. Source: ours.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

TARGET = 0.014
"""Half width of the speedup's 95 % interval, relative, at which timing stops."""
MIN_TRIALS = 5
"""Made in any case that fits `MAX_SECONDS`; nothing that a fast candidate does changes it."""
MAX_TRIALS = 101
MAX_SECONDS = 0.5
"""Device time of all trials. Only a forward of over a tenth of a second makes fewer than `MIN_TRIALS` of it."""
BUSY_SECONDS = 0.03
"""Wall-clock time of all trials after which no more are made for the sake of a narrower interval."""
SLOW_TRIALS = 3
"""Made in any case."""
RESOLUTION_US = 0.1
"""Of one event pair: no spread is taken to be smaller."""
_MEDIAN = 1.2533
"""Standard error of a median in units of a mean's, for normal noise: sqrt(pi / 2)."""
_SIGMA = 1.4826
"""Standard deviation in units of the median absolute deviation, for normal noise."""
_Z = 1.96
_STUDENT = {2: 4.3, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 12: 2.18, 15: 2.13, 20: 2.09}
"""97.5 % quantile of Student's t by degrees of freedom: a spread from few trials is itself uncertain."""


@dataclass(frozen=True, slots=True)
class Speedup:
    """Ratio of the typical times, reference over candidate, with its 95 % interval."""

    value: float
    low: float
    high: float
    reference_us: float
    reference_low_us: float
    reference_high_us: float
    candidate_us: float
    trials: int

    @property
    def half_width(self) -> float:
        """Relative."""
        return self.high / self.value - 1.0


def typical(times_us: Sequence[float]) -> float:
    """Interquartile mean: of the middle half.

    >>> typical([1.0, 10.0, 11.0, 12.0, 99.0])
    11.0
    """
    ordered, cut = sorted(times_us), len(times_us) // 4
    return statistics.fmean(ordered[cut : len(ordered) - cut])


def quantile(trials: int) -> float:
    """For a 95 % interval from so many trials.

    >>> quantile(5), quantile(12), quantile(100)
    (2.78, 2.23, 1.96)
    """
    freedom = max((known for known in _STUDENT if known < trials), default=2)
    return _STUDENT[freedom] if trials <= 25 else _Z


def relative_error(times_us: Sequence[float]) -> float:
    """Standard error over the typical time.

    >>> round(relative_error([9.0, 10.0, 10.0, 11.0, 10.0]), 4)  # MAD 0: the clock's resolution counts
    0.0056
    """
    middle = statistics.median(times_us)
    spread = _SIGMA * statistics.median(abs(t - middle) for t in times_us)
    return _MEDIAN * max(spread, RESOLUTION_US) / (math.sqrt(len(times_us)) * max(middle, 1e-3))


def speedup(reference_us: Sequence[float], candidate_us: Sequence[float]) -> Speedup:
    """From the trials' times, in order. Both sequences have the same length, at least one."""
    reference, candidate = typical(reference_us), typical(candidate_us)
    value = reference / max(candidate, 1e-3)
    mine, theirs = relative_error(reference_us), relative_error(candidate_us)
    z = quantile(len(candidate_us))
    width, own = math.exp(z * math.hypot(mine, theirs)), math.exp(z * mine)
    return Speedup(value, value / width, value * width, reference, reference / own, reference * own, candidate, len(candidate_us))


def enough(reference_us: Sequence[float], candidate_us: Sequence[float], busy_seconds: float) -> bool:
    """Whether to stop: the interval is narrow, or a limit is reached. `busy_seconds`: wall clock since the first trial."""
    done = len(candidate_us)
    spent = (sum(reference_us) + sum(candidate_us)) / 1e6
    if done < MIN_TRIALS:
        return done >= SLOW_TRIALS and spent >= MAX_SECONDS
    if done >= MAX_TRIALS or spent >= MAX_SECONDS or busy_seconds >= BUSY_SECONDS:
        return True
    return speedup(reference_us, candidate_us).half_width <= TARGET
