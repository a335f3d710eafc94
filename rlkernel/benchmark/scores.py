"""What a benchmark says: Fast@p, pass@k, speedup, hacking and lazy rates, each with an interval over problems. Pure.

Legend: P problems, K samples (trajectories) of a problem, T turns of a sample, B bootstrap samples.

A number is a ratio of two sums over problems, and its interval is a percentile bootstrap that draws problems again, with all
their samples: it says what other problems of the same kind would give, not what other samples of these would. Every problem
weighs the same in Fast@p and pass@k; failures are part of every denominator, hacks count as incorrect.

best: of the turns so far, the fastest correct one. last: the last turn, what a user without an evaluator gets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from rlkernel.metrics import HACKS, LAZY_COVERAGE
from rlkernel.statistics import LEVEL, SAMPLES, Array, Interval
from rlkernel.types import Evaluation

THRESHOLDS = (0.0, 0.8, 1.0, 1.2, 1.5, 2.0)
Sample = Sequence[Evaluation]
"""Turns of one trajectory, in order, at least one."""
Tried = Mapping[str, Sequence[Sample]]
"""Problem -> samples."""
Baseline = Literal["eager", "compiled"]
Reading = Literal["best", "last"]


def speedup_over(evaluation: Evaluation, baseline: Baseline) -> float | None:
    """Against the eager reference, or against the reference under torch.compile; None where it was not timed."""
    if baseline == "eager":
        return evaluation.speedup
    if evaluation.compiled_us is None or not evaluation.candidate_us:
        return None
    return evaluation.compiled_us / evaluation.candidate_us


def chosen(sample: Sample, reading: Reading, baseline: Baseline) -> Evaluation | None:
    """The turn that counts, None if it is not correct."""
    correct = [turn for turn in (sample if reading == "best" else sample[-1:]) if turn.correct]
    return max(correct, key=lambda turn: speedup_over(turn, baseline) or 0.0, default=None)


def is_fast(turn: Evaluation | None, p: float, baseline: Baseline, *, strict: bool) -> bool:
    """Correct with a speedup of at least p, or more than p. For p = 0 both mean correct."""
    if turn is None or p == 0:
        return turn is not None
    speedup = speedup_over(turn, baseline)
    return speedup is not None and (speedup > p if strict else speedup >= p)


def pass_at(k: int, n: int, c: int) -> float:
    """Chance that k of n samples, of which c are correct, hold a correct one: 1 - C(n-c, k) / C(n, k) (arXiv 2107.03374, eq. 1).

    Unbiased for drawing k samples. Raises ValueError unless 1 <= k <= n and 0 <= c <= n.

    >>> pass_at(1, 4, 1), pass_at(2, 4, 1), pass_at(3, 4, 2)  # 1/4; 1 - 3/6; 2 wrong cannot fill 3
    (0.25, 0.5, 1.0)
    """
    if not (1 <= k <= n and 0 <= c <= n):
        raise ValueError(f"pass_at(k={k}, n={n}, c={c}): it needs 1 <= k <= n and 0 <= c <= n")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def ratio(numerators_P: Sequence[float], denominators_P: Sequence[float], seed: int = 0) -> Interval | None:
    """sum(numerators) / sum(denominators) with its interval over problems; None when the denominators sum to 0. Bootstrap samples
    with denominator 0 are left out. With one problem the interval has no width.

    >>> ratio([1.0, 3.0], [2.0, 2.0])
    Interval(mean=1.0, low=0.5, high=1.5)
    """
    above, below = np.asarray(numerators_P, dtype=np.float64), np.asarray(denominators_P, dtype=np.float64)
    if not below.sum():
        return None
    weights_BP = _weights(len(above), seed)
    above_B, below_B = weights_BP @ above, weights_BP @ below
    ratios = above_B[below_B > 0] / below_B[below_B > 0]
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(above.sum() / below.sum()), float(low), float(high))


@lru_cache(maxsize=4)
def _weights(problems: int, seed: int) -> Array:
    return np.random.default_rng(seed).multinomial(problems, np.full(problems, 1 / problems), size=SAMPLES).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Fast:
    """Fast@p for one p."""

    at_least: Interval
    more_than: Interval


@dataclass(frozen=True, slots=True)
class Against:
    """Everything that needs a baseline, by reading."""

    problems: int
    fast: Mapping[Reading, Mapping[float, Fast]]
    geometric_mean: Mapping[Reading, Interval | None]
    """Of the speedups of the samples whose reading is correct; None without any."""


@dataclass(frozen=True, slots=True)
class Scores:
    """What was found for a set of problems."""

    problems: int
    samples: int
    turns: int
    """Evaluated, in all."""
    eager: Against
    compiled: Against | None
    """None where torch.compile was not timed. Without the problems whose reference it did not compile."""
    pass_at: Mapping[int, Interval]
    """k -> chance that a sample is correct in some turn, k = 1, 2, 4, ... up to the samples that every problem has."""
    correct_rate: Interval
    """Of turns, as the rates below."""
    hacking_rate: Interval
    lazy_rate: Interval
    statuses: Mapping[str, int]


def score(tried: Tried) -> Scores:
    """Raises ValueError without problems, or for a problem without samples."""
    if not tried or not all(samples and all(samples) for samples in tried.values()):
        raise ValueError("nothing to score: every problem needs a sample, and every sample a turn")
    turns = [turn for samples in tried.values() for sample in samples for turn in sample]
    statuses: dict[str, int] = {}
    for turn in turns:
        statuses[str(turn.status)] = statuses.get(str(turn.status), 0) + 1
    timed = {name: samples for name, samples in tried.items() if not _uncompiled(samples)}
    compiled = bool(timed) and any(turn.compiled_us is not None for turn in turns)
    return Scores(
        problems=len(tried),
        samples=sum(len(samples) for samples in tried.values()),
        turns=len(turns),
        eager=_against(tried, "eager"),
        compiled=_against(timed, "compiled") if compiled else None,
        pass_at=_pass(tried),
        correct_rate=_rate(tried, lambda turn: turn.correct),
        hacking_rate=_rate(tried, lambda turn: turn.status in HACKS),
        lazy_rate=_rate(tried, lambda turn: turn.correct and turn.coverage is not None and turn.coverage < LAZY_COVERAGE),
        statuses=dict(sorted(statuses.items(), key=lambda item: -item[1])),
    )


def until(tried: Tried, turn: int) -> dict[str, list[Sample]]:
    """As it was after `turn` turns; a sample that ended earlier is as it ended."""
    return {name: [sample[:turn] for sample in samples] for name, samples in tried.items()}


def fast(tried: Tried, p: float, reading: Reading, baseline: Baseline = "eager", *, strict: bool = False) -> Interval:
    """Fast@p: mean over problems of the share of samples whose reading is correct and fast enough."""

    def share(samples: Sequence[Sample]) -> float:
        return float(np.mean([is_fast(chosen(s, reading, baseline), p, baseline, strict=strict) for s in samples]))

    found = ratio([share(samples) for samples in tried.values()], [1.0] * len(tried))
    assert found is not None
    return found


def _uncompiled(samples: Sequence[Sample]) -> bool:
    """Whether a correct candidate was timed and the reference under torch.compile was not."""
    return any(turn.correct and turn.compiled_us is None for sample in samples for turn in sample)


def _against(tried: Tried, baseline: Baseline) -> Against:
    readings: tuple[Reading, ...] = ("best", "last")
    by_p = {
        reading: {p: Fast(*(fast(tried, p, reading, baseline, strict=strict) for strict in (False, True))) for p in THRESHOLDS}
        for reading in readings
    }
    means = {reading: _geometric_mean(tried, reading, baseline) for reading in readings}
    return Against(len(tried), by_p, means)


def _geometric_mean(tried: Tried, reading: Reading, baseline: Baseline) -> Interval | None:
    logs = []
    for samples in tried.values():
        turns = [chosen(sample, reading, baseline) for sample in samples]
        speedups = [speedup_over(turn, baseline) for turn in turns if turn is not None]
        logs.append([math.log(speedup) for speedup in speedups if speedup])
    found = ratio([sum(row) for row in logs], [float(len(row)) for row in logs])
    return None if found is None else Interval(math.exp(found.mean), math.exp(found.low), math.exp(found.high))


def _pass(tried: Tried) -> dict[int, Interval]:
    most = min(len(samples) for samples in tried.values())
    found: dict[int, Interval] = {}
    k = 1
    while k <= most:
        values = [pass_at(k, len(samples), sum(any(turn.correct for turn in s) for s in samples)) for samples in tried.values()]
        interval = ratio(values, [1.0] * len(values))
        assert interval is not None
        found[k] = interval
        k *= 2
    return found


def _rate(tried: Tried, what: Callable[[Evaluation], bool]) -> Interval:
    turns = [[turn for sample in samples for turn in sample] for samples in tried.values()]
    found = ratio([float(sum(map(what, row))) for row in turns], [float(len(row)) for row in turns])
    assert found is not None
    return found
