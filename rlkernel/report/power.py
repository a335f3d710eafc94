"""How much chance there is in runs, and the smallest difference that so many seeds detect.

A difference of two arms varies for four reasons, each of which is measured where runs allow it:

seeds       runs of one arm under other seeds
pairs       differences of two arms at equal seeds, which see equal data; what a claim's interval is made of
twins       runs of one arm and seed that were made twice, on another card or on the same one
problems    the problems that were asked: a difference's standard error over them, whatever the seed

An A/A pair is two runs, or two groups of runs, of one arm: nothing but chance can be between them.

Legend: S seeds, P problems.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rlkernel.report.claims import LATE
from rlkernel.report.columns import is_reward, is_share
from rlkernel.report.grouping import alike, labels
from rlkernel.report.summary import RunRecord, Window, paired, per_problem, same_reward, value
from rlkernel.statistics import SHARE_DIFFERENCE, Comparison, compare, detectable, seeds_needed

COUNTS = (2, 3, 4, 6, 12)
"""The numbers of seeds for which the smallest detectable difference is told."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A standard deviation that is pooled over several groups of values."""

    value: float
    degrees: int
    """The number of values minus the number of groups: the degrees of freedom of independent groups. Pairs that share an arm or
    twins that share a run are not, and know less."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The chance in one metric. Each deviation is None where no runs tell it."""

    metric: str
    seeds: Deviation | None
    """The deviation of runs of one arm under other seeds."""
    pairs: Deviation | None
    """The deviation of differences between two arms at equal seeds."""
    twins: Deviation | None
    """The deviation of differences between two runs of equal arm and seed."""
    problems: float | None
    """The standard error over problems of a difference between two arms; a mean over pairs of arms."""

    @property
    def difference(self) -> float | None:
        """The standard deviation over seeds of a difference between two arms: as it was seen in pairs of arms, else as the seeds
        of single arms have it, sqrt(2) times theirs."""
        if self.pairs is not None:
            return self.pairs.value
        return None if self.seeds is None else math.sqrt(2) * self.seeds.value

    def detectable(self, count: int) -> float | None:
        """The smallest difference that `count` seeds detect (`rlkernel.statistics.detectable`)."""
        return None if self.difference is None else detectable(self.difference, count)

    def needed(self, difference: float) -> int | None:
        """The fewest seeds that detect `difference`; None for too many to run, and where nothing is known."""
        return None if self.difference is None else seeds_needed(self.difference, difference)


@dataclass(frozen=True, slots=True)
class AlikePair:
    """An A/A pair: one arm under half of its seeds against the other half, or one arm made twice."""

    arm: str
    metric: str
    how: str
    """`other seeds`, or `made twice`."""
    difference: Comparison

    @property
    def holds(self) -> bool:
        """Whether the interval contains 0, as it should in 95 of 100 cases."""
        found = self.difference.interval
        return found is not None and found.low <= 0 <= found.high


Arms = Mapping[str, Mapping[int, Sequence[RunRecord]]]
"""Arm -> seed -> the runs of it: one, or its twins."""


def arms_of(runs: Sequence[RunRecord]) -> Arms:
    """Group runs: those of one arm that differ in more than their seed are arms of their own, called by their directories. Raises
    UsageError for modelled beside measured times."""
    groups = alike(runs)
    return dict(zip(labels([next(iter(seeds.values()))[0] for seeds in groups]), groups, strict=True))


def noise(arms: Arms, metric: str, window: Window = LATE) -> Noise:
    """Measure the chance in a metric."""
    values = _values(arms, metric, window)
    of_seeds = [[float(np.mean(same)) for same in seeds.values() if same] for seeds in values.values()]
    twins = [[b - a for a, b in combinations(same, 2)] for seeds in values.values() for same in seeds.values()]
    pairs, errors = [], []
    for first, second in _comparable(arms, metric):
        alike_seeds = {
            run.seed for run, _ in paired(*([same[0] for same in arms[arm].values() if same] for arm in (first, second)))
        }
        common = [seed for seed in arms[first] if seed in alike_seeds and values[first][seed] and values[second].get(seed)]
        pairs.append([float(np.mean(values[second][seed]) - np.mean(values[first][seed])) for seed in common])
        errors += _problem_error(arms, (first, second), common, metric, window)
    # The differences of twins have the mean 0: nothing is estimated, and every one is a degree of freedom.
    known = [difference for group in twins for difference in group]
    return Noise(
        metric,
        seeds=_pooled(of_seeds),
        pairs=_pooled(pairs),
        twins=Deviation(float(np.sqrt(np.mean(np.square(known)))), len(known)) if known else None,
        problems=float(np.mean(errors)) if errors else None,
    )


def alike_pairs(arms: Arms, metric: str, window: Window = LATE) -> Iterator[AlikePair]:
    """Every A/A pair: for each arm its even against its odd seeds, in their order, and its runs against their twins."""
    bounds = SHARE_DIFFERENCE if is_share(metric) else None
    for arm, values in _values(arms, metric, window).items():
        firsts = [own[0] for _, own in sorted(values.items()) if own]
        halves = [b - a for a, b in zip(firsts[::2], firsts[1::2], strict=False)]
        if len(halves) > 1:
            yield AlikePair(arm, metric, "other seeds", compare(halves, bounds=bounds))
        again = [own[1] - own[0] for _, own in sorted(values.items()) if len(own) > 1]
        if len(again) > 1:
            yield AlikePair(arm, metric, "made twice", compare(again, bounds=bounds))


def _values(arms: Arms, metric: str, window: Window) -> dict[str, dict[int, list[float]]]:
    """Arm -> seed -> the metric of its runs, without those that did not record it."""
    return {
        arm: {seed: [known for run in same if (known := value(run, metric, window)) is not None] for seed, same in seeds.items()}
        for arm, seeds in arms.items()
    }


def _comparable(arms: Arms, metric: str) -> Iterator[tuple[str, str]]:
    """The pairs of arms that may be compared in a metric."""
    for first, second in combinations(arms, 2):
        runs = [run for arm in (first, second) for same in arms[arm].values() for run in same]
        if not is_reward(metric) or same_reward(runs):
            yield first, second


def _problem_error(arms: Arms, pair: tuple[str, str], seeds: Sequence[int], metric: str, window: Window) -> list[float]:
    """The standard error over problems of a pair's difference, each problem's a mean over the seeds; empty where unknown."""
    runs = [tuple(arms[arm][seed][0] for arm in pair) for seed in seeds]
    tables = [(per_problem(own, metric, window), per_problem(other, metric, window)) for own, other in runs]
    common = sorted(set.intersection(*(set(own) & set(other) for own, other in tables))) if tables else []
    if len(common) < 2:
        return []
    differences_SP = np.array([[other[name] - own[name] for name in common] for own, other in tables])
    return [float(differences_SP.mean(axis=0).std(ddof=1) / math.sqrt(len(common)))]


def _pooled(groups: Sequence[Sequence[float]]) -> Deviation | None:
    """The deviation within groups, weighted by degrees of freedom; None where no group has two values."""
    several = [group for group in groups if len(group) > 1]
    degrees = sum(len(group) - 1 for group in several)
    if not degrees:
        return None
    squares = sum(float(np.square(np.asarray(group) - np.mean(group)).sum()) for group in several)
    return Deviation(math.sqrt(squares / degrees), degrees)
