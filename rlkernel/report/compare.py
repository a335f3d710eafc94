"""`rlkernel compare RUN RUN ...`: what the outcomes per problem say about the difference between arms, as tables and a figure.

Two arms are paired problem by problem, and seed by seed over the seeds that both have from one policy, since equal seeds see
equal data. Without such a seed, each arm's mean over its seeds stands for it: then only problems are paired, and nothing is said
about other seeds. Where the arms began from different policies, a notice says so.

Legend: S seeds, P problems.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlkernel import statistics
from rlkernel.errors import UsageError
from rlkernel.report.columns import METRICS, Metric, is_share
from rlkernel.report.grouping import Alike, alike, labels
from rlkernel.report.summary import (
    RunRecord,
    Window,
    common_timing,
    comparable,
    from_one_policy,
    per_problem,
    read_run,
    same_reward,
)
from rlkernel.runs.directory import MANIFEST, OUTCOMES
from rlkernel.runs.directory import METRICS as ROWS
from rlkernel.statistics import SHARE_DIFFERENCE, Comparison, Interval

RUNS = "runs.json"
"""The file in a report's folder that names the runs that it is about, relative to the folder."""
COLUMNS: tuple[Metric, ...] = (*METRICS, Metric("correct_rate", "Correct", percent=True, higher_is_better=True))
"""The metrics that arms are compared in."""
SIZES = ("model", "steps", "prompts_per_step", "rollouts", "turns", "validation_turns", "validation_rollouts", "max_new_tokens")
"""The fields of a run that decide how much was trained and measured."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: the runs of one arm, which differ in their seeds alone."""

    label: str
    runs: Mapping[int, RunRecord]
    """The run of each seed."""


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """One metric of two arms, as means over seeds and problems."""

    metric: Metric
    base: float
    other: float
    difference: Comparison
    higher: int
    """The number of problems whose difference is above 0."""
    equal: int
    lower: int
    """The number of problems whose difference is below 0."""


@dataclass(frozen=True, slots=True)
class ProblemDifference:
    """One problem under two arms, as means over seeds."""

    problem: str
    base: float
    other: float
    difference: float
    interval: Interval | None
    """Student's interval over the common seeds; None for fewer than two."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An arm beside the baseline, and the differences between them."""

    base: Side
    other: Side
    seeds: tuple[int, ...]
    """The seeds that both have from one policy; empty where only problems are paired."""
    steps: tuple[str, str]
    """The steps of the measurements that are compared, of the baseline and of the other, e.g. `20` or `10 to 20`."""
    left_out: int
    """The number of problems that only one of them has."""
    metrics: tuple[MetricDifference, ...]
    problems: tuple[ProblemDifference, ...]
    """The problems in the chosen metric, the largest difference first."""


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """The run directories that paths mean, in the order given and none twice. Each path is a run directory, a report's folder, or
    a folder of run directories.

    Raises UsageError for a path that is none of these.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        for run in _runs_of(path):
            found.setdefault(run.resolve(), run)
    return list(found.values())


def beside(path: Path) -> Path:
    """The folder in which to write what is said about a path of `find_runs`: never a run's own."""
    return path.parent if (path / MANIFEST).is_file() else path


def _runs_of(path: Path) -> list[Path]:
    if (path / MANIFEST).is_file():
        return [path]
    if (path / RUNS).is_file():
        try:
            named = [path / name for name in json.loads((path / RUNS).read_text(encoding="utf-8"))]
        except (ValueError, TypeError):
            raise UsageError(f"{path / RUNS}: not a list of paths: make the report again") from None
        for run in named:
            if not (run / MANIFEST).is_file():
                raise UsageError(f"{path / RUNS} names {run}, which is no run: make the report again")
        return named
    inside = sorted(child.parent for child in path.glob(f"*/{MANIFEST}"))
    if not inside:
        neither = f"neither a run ({MANIFEST}) nor a report ({RUNS}) nor a folder of runs"
        what = neither if path.is_dir() else "a file" if path.exists() else "no such directory"
        raise UsageError(f"{path}: {what}: give run directories or report folders")
    return inside


def sides(runs: Sequence[RunRecord]) -> list[Side]:
    """Group runs by their arm, in the order given. Runs of one arm that differ in more than their seed are arms of their own, and
    so are runs of equal seed; both are called by their directories.

    Raises UsageError for fewer than two, for modelled beside measured times, and for a run without outcomes.
    """
    for run in runs:
        if not run.outcomes:
            raise UsageError(f"{run.directory / OUTCOMES}: no outcomes of a validation, which runs are paired by: train it again")
    place = {id(run): i for i, run in enumerate(runs)}
    members = sorted((g for same in alike(runs) for g in _apart(same)), key=lambda g: place[id(next(iter(g.values())))])
    firsts = [next(iter(group.values())) for group in members]
    if len(members) < 2:
        raise UsageError(f"only {', '.join(run.arm for run in firsts) or 'nothing'} to compare: give runs of at least two arms")
    return [Side(label, group) for label, group in zip(labels(firsts), members, strict=True)]


def _apart(same: Alike) -> Iterator[dict[int, RunRecord]]:
    """The runs of a group with one of each seed, then their twins."""
    for k in range(max(map(len, same.values()))):
        yield {seed: twins[k] for seed, twins in same.items() if k < len(twins)}


def paid_alike(base: Side, other: Side) -> bool:
    """Whether both arms are paid by the same reward, so that their rewards can be compared."""
    return same_reward([*base.runs.values(), *other.runs.values()])


def of_other_policies(base: Side, other: Side) -> list[int]:
    """The seeds that both arms have, whose runs began from different policies."""
    return sorted(set(base.runs) & set(other.runs) - set(_common(base, other)))


def _common(base: Side, other: Side) -> tuple[int, ...]:
    """The seeds that both arms have from one policy."""
    shared = sorted(set(base.runs) & set(other.runs))
    return tuple(seed for seed in shared if from_one_policy(base.runs[seed], other.runs[seed]))


def size_differences(base: Side, other: Side) -> list[str]:
    """The sizes in which two arms differ, such as `steps 20 against 10`, with the other's first."""
    mine, theirs = (next(iter(side.runs.values())).manifest["run"] for side in (other, base))
    return [f"{name} {mine.get(name)} against {theirs.get(name)}" for name in SIZES if mine.get(name) != theirs.get(name)]


def unfinished(pair: Pair) -> list[str]:
    """The runs of a comparison that have not done all of their steps, such as `trloo, seed 0: last measured at step 4 of 16`."""
    runs = [(side.label, seed, side.runs[seed]) for side in (pair.base, pair.other) for seed in pair.seeds or sorted(side.runs)]
    return [
        f"{label}, seed {seed}: last measured at step {max(run.outcomes)} of {run.manifest['run']['steps']}"
        for label, seed, run in runs
        if not run.finished
    ]


def contrast(base: Side, other: Side, metric: str, window: Window) -> Pair:
    """The differences other minus base. metric: the key of COLUMNS in which problems are listed.

    Raises UsageError where they share no problem, or have no measurement in the window.
    """
    common = _common(base, other)
    # Without a common seed each side is one row: its mean over its own seeds.
    chosen = [[side.runs[seed] for seed in common or sorted(side.runs)] for side in (base, other)]
    steps = [_steps(runs, window) for runs in chosen]
    names = [set.intersection(*(_problems(run, window) for run in runs)) for runs in chosen]
    shared = sorted(names[0] & names[1])
    if not shared:
        raise UsageError(f"{base.label} and {other.label} share no validation problem: compare runs over the same problems")
    rows: list[MetricDifference] = []
    listed: tuple[ProblemDifference, ...] = ()
    columns = comparable([run for runs in chosen for run in runs], COLUMNS)
    if metric not in {column.key for column in columns}:
        raise UsageError(f"--metric {metric}: {base.label} and {other.label} are paid by different rewards; choose a share")
    for column in columns:
        if not all(_has(run, column.key, window) for runs in chosen for run in runs):
            continue
        tables = [np.array([_values(run, column.key, window, shared) for run in runs]) for runs in chosen]
        base_SP, other_SP = tables if common else [table.mean(axis=0, keepdims=True) for table in tables]
        differences_SP = other_SP - base_SP
        bounds = SHARE_DIFFERENCE if is_share(column.key) else None
        found = statistics.compare(differences_SP.mean(axis=1).tolist(), differences_SP, bounds)
        by_problem = differences_SP.mean(axis=0)
        counts = [int((np.sign(by_problem.round(12)) == sign).sum()) for sign in (1, 0, -1)]
        rows.append(MetricDifference(column, float(base_SP.mean()), float(other_SP.mean()), found, *counts))
        if column.key == metric:
            listed = _listed(shared, base_SP, other_SP, bounds)
    if not listed:
        raise UsageError(f"--metric {metric}: not recorded by all runs; choose from {', '.join(row.metric.key for row in rows)}")
    return Pair(base, other, common, (steps[0], steps[1]), len(names[0] ^ names[1]), tuple(rows), listed)


def _listed(
    names: Sequence[str], base_SP: statistics.Array, other_SP: statistics.Array, bounds: tuple[float, float] | None
) -> tuple[ProblemDifference, ...]:
    rows = []
    for i, name in enumerate(names):
        base_S, other_S = base_SP[:, i], other_SP[:, i]
        found = statistics.compare((other_S - base_S).tolist(), bounds=bounds)
        rows.append(ProblemDifference(name, float(base_S.mean()), float(other_S.mean()), found.mean, found.interval))
    return tuple(sorted(rows, key=lambda row: (-row.difference, row.problem)))


def _chosen(run: RunRecord, window: Window) -> list[int]:
    """The steps of a run's measurements in the window. Raises UsageError where there is none."""
    steps = sorted(run.outcomes)
    chosen = window.choose(steps)
    if not chosen:
        asked = "after the first half" if window.step is None else f"at step {window.step}"
        raise UsageError(f"{run.directory}: no measurement {asked}; it has {', '.join(map(str, steps))}")
    return chosen


def _steps(runs: Sequence[RunRecord], window: Window) -> str:
    steps = sorted({step for run in runs for step in _chosen(run, window)})
    return str(steps[0]) if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"


def _problems(run: RunRecord, window: Window) -> set[str]:
    return set.intersection(*(set(run.outcomes[step]) for step in _chosen(run, window)))


def _has(run: RunRecord, key: str, window: Window) -> bool:
    return all(key in numbers for step in _chosen(run, window) for numbers in run.outcomes[step].values())


def _values(run: RunRecord, key: str, window: Window, names: Sequence[str]) -> list[float]:
    table = per_problem(run, key, window)
    return [table[name] for name in names]


def compare_arms(paths: Sequence[Path], metric: str, window: Window) -> tuple[list[Pair], str]:
    """Compare every arm with that of the first run, and say how times were taken. Runs that have not measured yet, such as those
    that a wrong flag ended, are left out with a line on standard error. Raises UsageError as `find_runs`, `read_run` and
    `contrast` do."""
    if metric not in {column.key for column in COLUMNS}:
        raise UsageError(f"--metric {metric}: choose from {', '.join(column.key for column in COLUMNS)}")
    runs = find_runs(paths)
    measured = [run for run in runs if (run / ROWS).is_file()]
    for run in runs if measured else ():
        if run not in measured:
            print(f"left out, nothing measured yet: {run}", file=sys.stderr)
    records = [read_run(run) for run in measured or runs]
    return pair_arms(records, metric, window), common_timing(records)


def pair_arms(records: Sequence[RunRecord], metric: str, window: Window) -> list[Pair]:
    """Compare every arm with that of the first run. Raises UsageError as `sides` and `contrast` do."""
    base, *others = sides(records)
    return [contrast(base, other, metric, window) for other in others]
