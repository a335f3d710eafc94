"""Scores a benchmark: Fast@p, pass@k, speedup, hacking and lazy rates, each with an interval over problems. Nothing here is read,
written or drawn without a seed.

Legend: P problems, K trajectories of a problem, T turns of a trajectory, B bootstrap draws. A sample is a trajectory: the word of
pass@k.

A number is a ratio of two sums over problems, and its interval is a percentile bootstrap that draws problems again, with all
their samples: it says what other problems of the same kind would give, not what other samples of these would. Every problem
weighs the same in Fast@p and pass@k; failures are part of every denominator, hacks count as incorrect.

The reading `best` takes the fastest correct turn so far; `last` takes the last turn, which a user without an evaluator gets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from rlkernel.metrics import is_hack, is_lazy
from rlkernel.statistics import LEVEL, SAMPLES, Array, Interval
from rlkernel.types import Closeness, Evaluation

THRESHOLDS = (0.0, 0.8, 1.0, 1.2, 1.5, 2.0)
Verdicts = Sequence[Evaluation]
"""The evaluations of one trajectory's turns, in order, at least one."""
Tried = Mapping[str, Sequence[Verdicts]]
"""The trajectories at each problem."""
Baseline = Literal["eager", "compiled"]
Reading = Literal["best", "last"]


def speedup_over(evaluation: Evaluation, baseline: Baseline) -> float | None:
    """The speedup over the eager reference, or over the reference under torch.compile; None where it was not timed."""
    if baseline == "eager":
        return evaluation.speedup
    if evaluation.compiled_us is None or not evaluation.candidate_us:
        return None
    return evaluation.compiled_us / evaluation.candidate_us


def counted_turn(sample: Verdicts, reading: Reading, baseline: Baseline) -> Evaluation | None:
    """The turn of a trajectory that counts, by the reading; None if it is not correct."""
    correct = [turn for turn in (sample if reading == "best" else sample[-1:]) if turn.correct]
    return max(correct, key=lambda turn: speedup_over(turn, baseline) or 0.0, default=None)


def reaches(turn: Evaluation | None, p: float, baseline: Baseline, *, strict: bool) -> bool:
    """Whether a turn is correct with a speedup of at least p, or with strict of more than p. For p = 0 both mean correct."""
    if turn is None or p == 0:
        return turn is not None
    speedup = speedup_over(turn, baseline)
    return speedup is not None and (speedup > p if strict else speedup >= p)


def pass_at(k: int, n: int, c: int) -> float:
    """The chance that k of n samples, of which c are correct, hold a correct one: 1 - C(n-c, k) / C(n, k) (arXiv 2107.03374, eq.
    1).

    Unbiased for drawing k samples. Raises ValueError unless 1 <= k <= n and 0 <= c <= n.

    >>> pass_at(1, 4, 1), pass_at(2, 4, 1), pass_at(3, 4, 2)  # 1/4; 1 - 3/6; 2 wrong cannot fill 3
    (0.25, 0.5, 1.0)
    """
    if not (1 <= k <= n and 0 <= c <= n):
        raise ValueError(f"pass_at(k={k}, n={n}, c={c}): it needs 1 <= k <= n and 0 <= c <= n")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def ratio(numerators_P: Sequence[float], denominators_P: Sequence[float], seed: int = 0) -> Interval | None:
    """The ratio sum(numerators) / sum(denominators) with its interval over problems; None when the denominators sum to 0.
    Bootstrap samples with denominator 0 are left out. With one problem the interval has no width.

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
class FastShare:
    """Fast@p for one p."""

    at_least: Interval
    more_than: Interval


@dataclass(frozen=True, slots=True)
class BaselineScores:
    """The scores that need a baseline, by reading."""

    problems: int
    fast: Mapping[Reading, Mapping[float, FastShare]]
    geometric_mean: Mapping[Reading, Interval | None]
    """The geometric mean of the speedups of the samples whose reading is correct; None without any."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a set of problems."""

    problems: int
    samples: int
    turns: int
    """The number of evaluated turns of all samples."""
    eager: BaselineScores
    compiled: BaselineScores | None
    """The scores without the problems whose reference torch.compile did not compile; None where it was not timed."""
    pass_at: Mapping[int, Interval]
    """The chance that one of k samples is correct in some turn, for k = 1, 2, 4, ... up to the samples that every problem has."""
    correct_rate: Interval
    """The share of turns that are correct; the rates below are shares of turns, too."""
    hacking_rate: Interval
    lazy_rate: Interval
    kernelbench_loose_rate: Interval
    """The share of turns whose outputs KernelBench's rule takes for the reference's at 1e-2, whatever else is wrong with them."""
    kernelbench_tight_rate: Interval
    """The same at 1e-4."""
    statuses: Mapping[str, int]


def score(tried: Tried) -> Scores:
    """Score a set of problems. Raises ValueError without problems, or for a problem without samples."""
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
        hacking_rate=_rate(tried, is_hack),
        lazy_rate=_rate(tried, is_lazy),
        kernelbench_loose_rate=_rate(tried, lambda turn: turn.kernelbench_close in (Closeness.LOOSE, Closeness.TIGHT)),
        kernelbench_tight_rate=_rate(tried, lambda turn: turn.kernelbench_close is Closeness.TIGHT),
        statuses=dict(sorted(statuses.items(), key=lambda item: -item[1])),
    )


def after_turn(tried: Tried, turn: int) -> dict[str, list[Verdicts]]:
    """The trajectories as they were after `turn` turns; one that ended earlier is as it ended."""
    return {name: [sample[:turn] for sample in samples] for name, samples in tried.items()}


def fast(tried: Tried, p: float, reading: Reading, baseline: Baseline = "eager", *, strict: bool = False) -> Interval:
    """Fast@p: the mean over problems of the share of samples whose reading is correct and fast enough."""

    def share(samples: Sequence[Verdicts]) -> float:
        return float(np.mean([reaches(counted_turn(s, reading, baseline), p, baseline, strict=strict) for s in samples]))

    found = ratio([share(samples) for samples in tried.values()], [1.0] * len(tried))
    assert found is not None
    return found


def _uncompiled(samples: Sequence[Verdicts]) -> bool:
    """Whether a correct candidate was timed and the reference under torch.compile was not."""
    return any(turn.correct and turn.compiled_us is None for sample in samples for turn in sample)


def _against(tried: Tried, baseline: Baseline) -> BaselineScores:
    readings: tuple[Reading, ...] = ("best", "last")
    by_p = {
        reading: {
            p: FastShare(*(fast(tried, p, reading, baseline, strict=strict) for strict in (False, True))) for p in THRESHOLDS
        }
        for reading in readings
    }
    means = {reading: _geometric_mean(tried, reading, baseline) for reading in readings}
    return BaselineScores(len(tried), by_p, means)


def _geometric_mean(tried: Tried, reading: Reading, baseline: Baseline) -> Interval | None:
    logs = []
    for samples in tried.values():
        turns = [counted_turn(sample, reading, baseline) for sample in samples]
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
