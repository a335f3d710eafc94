"""Intervals and tests for few runs: what several seeds and problems support, and no more.

A comparison has two sources of chance: which seeds were trained, and which problems were asked. Each number here says which of
them it speaks about. numpy alone; everything random is drawn from a seed.

Legend: S seeds, P problems, N independent values, B bootstrap samples, F sign flips.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEVEL = 0.95
SAMPLES = 10_000
"""How often a bootstrap draws."""
EXACT = 20
"""Values up to which all 2^N sign flips are enumerated; more are sampled."""
POWER = 0.8
"""The chance with which a difference is to be detected, where a power is computed."""
MOST_SEEDS = 1000
"""The most seeds that a design is computed for."""
SHARE_DIFFERENCE = (-1.0, 1.0)
"""What the difference of two shares can be."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the bounds of its confidence interval."""

    mean: float
    low: float
    high: float

    def within(self, bounds: tuple[float, float]) -> Interval:
        """The interval cut to what its quantity can be. A cut loses no coverage, since the truth is never outside the bounds. A
        bootstrap would respect them, too, but over two or three seeds it is too narrow.

        >>> Interval(0.25, -2.93, 3.43).within((-1.0, 1.0))
        Interval(mean=0.25, low=-1.0, high=1.0)
        """
        return Interval(self.mean, max(self.low, bounds[0]), min(self.high, bounds[1]))


def student_interval(values: Sequence[float], level: float = LEVEL) -> Interval | None:
    """Mean and confidence interval over N independent values, Student's t with N - 1 degrees of freedom; None for fewer than two.

    Equal values have an interval without width: then N is too small, or the quantity too coarse, to say anything about chance.

    >>> student_interval([1.0, 2.0, 3.0])  # 2 +- 4.3027 * 1 / sqrt(3)  # doctest: +ELLIPSIS
    Interval(mean=2.0, low=-0.4841..., high=4.4841...)
    """
    if len(values) < 2:
        return None
    found = np.asarray(values, dtype=np.float64)
    half = student_quantile((1 + level) / 2, len(found) - 1) * float(found.std(ddof=1)) / math.sqrt(len(found))
    mean = float(found.mean())
    return Interval(mean, mean - half, mean + half)


def student_quantile(p: float, degrees: int) -> float:
    """The t with P(T <= t) = p, for 1/2 <= p < 1. Raises ValueError for other arguments.

    >>> round(student_quantile(0.975, 1), 4), round(student_quantile(0.975, 2), 4), round(student_quantile(0.975, 30), 4)
    (12.7062, 4.3027, 2.0423)
    """
    if not 0.5 <= p < 1 or degrees < 1:
        raise ValueError(f"student_quantile({p}, {degrees}): p must be in [0.5, 1) and degrees at least 1")
    low, high = 0.0, 1.0
    while _student_cdf(high, degrees) < p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_cdf(middle, degrees) < p else (low, middle)
    return (low + high) / 2


def _student_cdf(t: float, degrees: int) -> float:
    """P(T <= t) for t >= 0 (Abramowitz and Stegun 26.7.3 and 26.7.4: a finite sum for whole degrees of freedom)."""
    theta = math.atan(t / math.sqrt(degrees))
    cosine = math.cos(theta)
    odd = degrees % 2
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    # Powers of the cosine: 1, 3, 5, ... degrees - 2 with factors 2/3, 4/5, ...; or 0, 2, 4, ... with 1/2, 3/4, ...
    for power in range(odd, degrees - 1, 2):
        total += term
        term *= cosine * cosine * (power + 1) / (power + 2)
    within = 2 / math.pi * (theta + math.sin(theta) * total) if odd else math.sin(theta) * total
    return (1 + within) / 2


def student_p(values: Sequence[float]) -> float | None:
    """Two-sided p of Student's test that the mean of N independent values is 0; None for fewer than two, and for equal values,
    which say nothing about chance.

    >>> student_p([1.0, 2.0, 3.0])  # t = 2 / (1 / sqrt(3)) = 3.4641 with 2 degrees of freedom  # doctest: +ELLIPSIS
    0.0741...
    """
    found = np.asarray(values, dtype=np.float64)
    deviation = float(found.std(ddof=1)) if len(found) > 1 else 0.0
    if deviation <= 1e-12 * max(1.0, float(np.abs(found).max(initial=0.0))):
        return None
    return 2 * (1 - _student_cdf(abs(float(found.mean())) / deviation * math.sqrt(len(found)), len(found) - 1))


def detectable(deviation: float, count: int, tests: int = 1) -> float:
    """The smallest true mean difference that `count` pairs detect with the chance POWER, at the two-sided level
    a = (1 - LEVEL) / tests.

    (t_(1 - a/2) + t_POWER) * deviation / sqrt(count), with count - 1 degrees of freedom (Bloom 1995, "Minimum detectable
    effects", Evaluation Review 19(5), with Student's quantiles as for a paired t-test). deviation: the standard deviation of the
    pairs' differences, which few pairs know badly themselves. tests: the number of tests that `holm` adjusts together; the least
    of their p is held to this level, and none to a stricter one. Raises ValueError for fewer than two pairs.

    >>> round(detectable(0.1, 4), 4)  # (3.1824 + 0.9785) * 0.1 / 2
    0.208
    """
    if count < 2:
        raise ValueError(f"detectable(..., {count}): it needs at least two pairs")
    quantiles = student_quantile(1 - (1 - LEVEL) / (2 * tests), count - 1) + student_quantile(POWER, count - 1)
    return quantiles * deviation / math.sqrt(count)


def seeds_needed(deviation: float, difference: float, tests: int = 1) -> int | None:
    """The fewest pairs, at least two, of which `detectable` is at most `difference`; None for more than MOST_SEEDS. tests: see
    `detectable`.

    Raises ValueError for a difference that is not above 0.

    >>> seeds_needed(0.1, 0.21), seeds_needed(0.1, 0.2), seeds_needed(9.0, 0.05)
    (4, 5, None)
    """
    if difference <= 0:
        raise ValueError(f"seeds_needed(..., {difference}): the difference to detect must be above 0")
    return next((count for count in range(2, MOST_SEEDS + 1) if detectable(deviation, count, tests) <= difference), None)


def bootstrap_interval(values_SP: Array, level: float = LEVEL, seed: int = 0) -> Interval:
    """Mean of S x P values with a percentile interval, seeds and problems drawn again independently (both are crossed).

    Few seeds make it too narrow: with S = 3 the spread between seeds counts by two thirds. `student_interval` over seeds does
    not have that fault. Raises ValueError for no values.
    """
    S, P = values_SP.shape
    if S == 0 or P == 0:
        raise ValueError("a bootstrap needs at least one seed and one problem")
    generator = np.random.default_rng(seed)
    seeds_BS = generator.multinomial(S, np.full(S, 1 / S), size=SAMPLES) / S
    problems_BP = generator.multinomial(P, np.full(P, 1 / P), size=SAMPLES) / P
    means_B = np.einsum("bs,sp,bp->b", seeds_BS, values_SP, problems_BP)
    low, high = np.quantile(means_B, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values_SP.mean()), float(low), float(high))


def sign_flip_test(differences: Sequence[float], seed: int = 0) -> float:
    """Two-sided p of the paired permutation test: the share of sign flips whose mean is at least as far from 0.

    Exact up to EXACT differences that are not 0 (those that are 0 change nothing); above, a million sampled flips, counting the
    observed one.

    >>> sign_flip_test([1.0, 2.0, 3.0])  # 2 of 8: all plus, all minus
    0.25
    """
    nonzero = np.asarray([d for d in differences if d != 0.0], dtype=np.float64)
    if len(nonzero) == 0:
        return 1.0
    # Rounding must not decide whether a flip is as extreme as what was observed.
    observed = abs(float(nonzero.sum())) * (1 - 1e-9)
    if len(nonzero) <= EXACT:
        sums_F = np.zeros(1)
        for d in nonzero:
            sums_F = np.concatenate([sums_F + d, sums_F - d])
        return float((np.abs(sums_F) >= observed).mean())
    generator, draws, extreme = np.random.default_rng(seed), 1_000_000, 1
    for _ in range(20):
        # float64, because BLAS knows no int8: 20 times as slow.
        signs = generator.integers(0, 2, size=(draws // 20, len(nonzero)), dtype=np.int8) * 2.0 - 1.0
        extreme += int((np.abs(signs @ nonzero) >= observed).sum())
    return extreme / (draws + 1)


def p_text(p: float | None) -> str:
    """A p value as a report shows it.

    >>> p_text(0.0314), p_text(0.0002), p_text(None)
    ('0.031', '<0.001', '')
    """
    return "" if p is None else f"{p:.3f}" if p >= 0.0005 else "<0.001"


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P values adjusted for being several (Holm 1979): in ascending order, p_i times the number of those not smaller, never
    descending.

    >>> holm([0.01, 0.04, 0.03])  # 3 * 0.01; 2 * 0.03; max(1 * 0.04, 0.06)
    (0.03, 0.06, 0.06)
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * p_values[i]))
        adjusted[i] = least
    return tuple(adjusted)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences of two arms, between equal seeds and equal problems."""

    mean: float
    seeds: int
    problems: int | None
    """How many problems both arms have; None where values are known per run only; then `bootstrap` and `p` are None, too."""
    interval: Interval | None
    """Student's interval over the seeds' mean differences: would other seeds say the same? None for one seed."""
    bootstrap: Interval | None
    """The bootstrap's interval over seeds and problems."""
    p: float | None
    """The test of sign flips on the problems' differences, each a mean over the seeds: would other problems say the same of these
    runs?"""
    deviation: float | None = None
    """The standard deviation of the seeds' mean differences, which a design is computed from; None for one seed."""
    seeds_p: float | None = None
    """Student's p over the seeds, which claims are corrected by; None for one seed, and for equal differences."""

    @property
    def told_p(self) -> float | None:
        """`p`, where people are told of it: that of one seed is of one pair of runs, and not of the arms."""
        return self.p if self.seeds > 1 else None


def compare(
    differences_S: Sequence[float], differences_SP: Array | None = None, bounds: tuple[float, float] | None = None
) -> Comparison:
    """What the differences of two arms say of other seeds and other problems.

    differences_S: per seed, of the runs' own numbers; differences_SP: per seed and problem, where they are known; bounds: what
    a difference can be, to which Student's interval is cut; the bootstrap cannot leave it.

    Raises ValueError for no seed.
    """
    if not len(differences_S):
        raise ValueError("no seed that both arms have: nothing to compare")
    mean = float(np.mean(differences_S))
    interval = student_interval(differences_S)
    if interval is not None and bounds is not None:
        interval = interval.within(bounds)
    deviation = float(np.std(differences_S, ddof=1)) if len(differences_S) > 1 else None
    seeds_p = student_p(differences_S)
    if differences_SP is None or differences_SP.size == 0:
        return Comparison(mean, len(differences_S), None, interval, None, None, deviation, seeds_p)
    bootstrap = bootstrap_interval(differences_SP)
    p = sign_flip_test(differences_SP.mean(axis=0).tolist())
    return Comparison(mean, len(differences_S), differences_SP.shape[1], interval, bootstrap, p, deviation, seeds_p)
