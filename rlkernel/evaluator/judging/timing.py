"""When enough timed runs were made, and what they say. Pure; the runs themselves are made by `gpu/stopwatch.py`.

Every trial times the candidate and the reference once, on inputs of its own. The speedup is the ratio of the means without the
disturbed trials (further than `FAR` from the median, at most a quarter at either end). A mean needs 15 % fewer trials for the
same spread than an interquartile mean (40 candidates, 96 trials each, one H200), and resolves more than the clock's ticks.
Source: ours.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from rlkernel.evaluator.messages.gpu import Speedup
from rlkernel.types import TIMING_WIDTH

MIN_TRIALS = 5
"""Trials that are made in any case that fits `MAX_SECONDS`; nothing that a fast candidate does changes it."""
MAX_TRIALS = 101
MAX_SECONDS = 0.5
"""Device time of all trials. Only a forward of over a tenth of a second makes fewer than `MIN_TRIALS` of it."""
BUSY_SECONDS = 0.03
"""Wall-clock time of all trials after which no more are made for the sake of a narrower interval."""
SLOW_TRIALS = 3
"""Trials that are made in any case."""
RESOLUTION_US = 0.1
"""Resolution of one event pair: no spread is taken to be smaller."""
MAX_BATCH = 8
"""Trials made at once on the word of those before them."""
FAR = 4.0
"""Standard deviations from the median from which on a trial counts as disturbed."""
NEAR = 0.01
"""Share of the median below which no standard deviation is taken to be: few equal times do not make others look disturbed."""
_SIGMA = 1.4826
"""Standard deviation in units of the median absolute deviation, for normal noise."""
_Z = 1.96
_STUDENT = {2: 4.3, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 12: 2.18, 15: 2.13, 20: 2.09}
"""97.5 % quantile of Student's t by degrees of freedom: a spread from few trials is itself uncertain."""


def undisturbed(times_us: Sequence[float]) -> list[float]:
    """The times in order of size, without those that lie far from the median: at most a quarter of them at either end.

    >>> undisturbed([10.0, 99.0, 10.1, 9.9, 10.0])
    [9.9, 10.0, 10.0, 10.1]
    """
    ordered, quarter = sorted(times_us), len(times_us) // 4
    middle = statistics.median(ordered)
    far = FAR * max(_SIGMA * statistics.median(abs(t - middle) for t in ordered), RESOLUTION_US, NEAR * middle)
    low = sum(middle - t > far for t in ordered[:quarter])
    high = sum(t - middle > far for t in ordered[len(ordered) - quarter :])
    return ordered[low : len(ordered) - high]


def typical(times_us: Sequence[float]) -> float:
    """The mean of the undisturbed times.

    >>> typical([10.0, 99.0, 10.1, 9.9, 10.0])
    10.0
    """
    return statistics.fmean(undisturbed(times_us))


def quantile(trials: int) -> float:
    """The half width of a 95 % interval from so many trials, in standard errors.

    >>> quantile(5), quantile(12), quantile(100)
    (2.78, 2.23, 1.96)
    """
    freedom = max((known for known in _STUDENT if known < trials), default=2)
    return _STUDENT[freedom] if trials <= 25 else _Z


def relative_error(times_us: Sequence[float]) -> float:
    """The standard error of the typical time, relative to it.

    >>> round(relative_error([98.0, 99.0, 100.0, 101.0, 102.0]), 4)  # standard deviation 1.58, over sqrt(5)
    0.0071
    """
    return _error_of(undisturbed(times_us))


def _error_of(counted: Sequence[float]) -> float:
    """The same of times that are undisturbed."""
    mean, freedom = statistics.fmean(counted), max(1, len(counted) - 1)
    deviation = math.sqrt(math.fsum((us - mean) ** 2 for us in counted) / freedom)  # `statistics.stdev` counts in fractions
    return max(deviation, RESOLUTION_US) / (math.sqrt(len(counted)) * max(mean, 1e-3))


def speedup(reference_us: Sequence[float], candidate_us: Sequence[float]) -> Speedup:
    """The ratio of the typical times, from the trials' times in order. Both sequences have the same length, at least one; one
    trial has an interval of the clock's resolution alone."""
    counted = undisturbed(reference_us), undisturbed(candidate_us)  # once: a look at the trials waits for it
    reference, candidate = map(statistics.fmean, counted)
    value = reference / max(candidate, 1e-3)
    mine, theirs = map(_error_of, counted)
    z = quantile(min(map(len, counted)))
    width, own = math.exp(z * math.hypot(mine, theirs)), math.exp(z * mine)
    return Speedup(value, value / width, value * width, reference, reference / own, reference * own, candidate, len(candidate_us))


def missing(
    reference_us: Sequence[float], candidate_us: Sequence[float], busy_seconds: float, width: float = TIMING_WIDTH
) -> int:  # fmt: skip
    """How many more trials to make at once; 0 to stop, because the interval is narrow or a limit is reached.

    busy_seconds: wall clock since the first trial. width: half of the speedup's 95 % interval, relative, that is narrow enough.
    """
    done = len(candidate_us)
    spent = (sum(reference_us) + sum(candidate_us)) / 1e6
    if done < MIN_TRIALS:
        return 0 if done >= SLOW_TRIALS and spent >= MAX_SECONDS else MIN_TRIALS - done
    if done >= MAX_TRIALS or spent >= MAX_SECONDS or busy_seconds >= BUSY_SECONDS:
        return 0
    over = speedup(reference_us, candidate_us).half_width / width
    if over <= 1.0:
        return 0
    # The interval shrinks with the square root; a little fewer, since the next look costs little and a trial more.
    return max(1, min(MAX_BATCH, math.ceil(0.9 * done * over**2) - done))
