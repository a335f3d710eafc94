"""Reads the runs of an experiment and sums them up arm by arm, with the spread over seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rlkernel.errors import UsageError
from rlkernel.report.columns import METRICS, OPTIONAL, Metric, is_reward, is_share
from rlkernel.runs.directory import OUTCOMES
from rlkernel.runs.outcomes import KEYS, OPTIONAL_KEYS, read_outcomes
from rlkernel.runs.texts import MENDED, jsonl
from rlkernel.statistics import SHARE_DIFFERENCE, Comparison, compare

MetricsLine = Mapping[str, Any]
"""The numbers of one step, as one line of metrics.jsonl has them."""


REQUIRED = (*(metric.key for metric in METRICS), "fast_1_turn_1")
"""The numbers that a validation must have for the tables and the figure."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a run directory holds."""

    directory: Path
    arm: str
    seed: int
    timing: str | None
    """`modelled` or `measured`; None when no candidate was ever timed."""
    manifest: Mapping[str, Any]
    validation: tuple[MetricsLine, ...]
    """The validations in the order of steps, one per step."""
    training: tuple[MetricsLine, ...] = ()
    outcomes: Mapping[int, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """The outcomes of the validations: step -> problem -> numbers. Empty for a run that did not record them."""

    @property
    def finished(self) -> bool:
        """Whether the run has done all of its steps."""
        return "finished" in self.manifest


@dataclass(frozen=True, slots=True)
class Spread:
    """One quantity over seeds; half the range says how far apart its values are. Intervals belong to comparisons."""

    mean: float
    half_range: float
    seeds: int

    def show(self, metric: Metric, signed: bool = False) -> str:
        """The mean as text, and half the range where there are several seeds, e.g. `12 ± 3 %`."""
        if self.seeds < 2:
            return metric.show(self.mean, signed)
        value, half = metric.show(self.mean, signed), metric.show(self.half_range)
        return f"{value.removesuffix(' %')} ± {half}"


def spread(values: Sequence[float]) -> Spread:
    """The spread of a quantity whose value is known for each seed.

    >>> spread([1.0, 2.0])
    Spread(mean=1.5, half_range=0.5, seeds=2)
    """
    return Spread(sum(values) / len(values), (max(values) - min(values)) / 2, len(values))


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm over its seeds. The keys of the mappings are those of the metrics in which the arms can stand side by side."""

    arm: str
    seeds: tuple[int, ...]
    steps: int
    """The step of the last validation, the least of the seeds."""
    first: Mapping[str, Spread]
    last: Mapping[str, Spread]
    difference: Mapping[str, Comparison] | None
    """The last values minus those of the baseline, between equal seeds of one policy, which see equal data. None for the
    baseline, and for arms that share no such seed with it."""


def read_run(directory: Path) -> RunRecord:
    """Read a run directory. Raises UsageError, which names the file, when the run has no manifest or no validation yet."""
    manifest = _json(directory / "manifest.json")
    every = list(jsonl(directory / "metrics.jsonl"))
    rows = {row["step"]: row for row in every if row["split"] == "validation"}
    training = {row["step"]: row for row in every if row["split"] == "train"}
    if not rows:
        raise UsageError(f"{directory / 'metrics.jsonl'}: no validation row yet; let the run measure once")
    outcomes = read_outcomes(directory)
    # They are written before the row. Without the last of them, problems would be told of an earlier step than the means.
    if outcomes and max(rows) not in outcomes:
        raise UsageError(f"{directory / OUTCOMES}: no row of step {max(rows)}, which metrics.jsonl has; {MENDED}")
    validation = tuple({**_apparent(outcomes.get(step, {})), **rows[step]} for step in sorted(rows))
    for row in validation:
        for key in REQUIRED:
            if key not in row:
                raise UsageError(f"{directory / 'metrics.jsonl'}: the validation row of step {row['step']} lacks {key!r}")
    return RunRecord(
        directory,
        manifest["arm"],
        manifest["seed"],
        manifest["timing"],
        manifest,
        validation,
        tuple(training[step] for step in sorted(training)),
        outcomes,
    )


def is_finished(directory: Path) -> bool:
    """Whether the run of a directory has done all of its steps, by its manifest alone. Raises UsageError, which names the file,
    when the run has no manifest."""
    return "finished" in _json(directory / "manifest.json")


def _apparent(problems: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The means over problems of `rlkernel.runs.outcomes.apparent`, which a line of metrics lacks."""
    keys = [key for key in next(iter(problems.values()), {}) if key.startswith("apparent_")]
    return {key: sum(problem[key] for problem in problems.values()) / len(problems) for key in keys}


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; give the directory of a run") from None
    except ValueError as error:
        raise UsageError(f"{path}: not JSON ({error}): delete the directory {path.parent} to start over") from None


def by_arm(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Group runs by their arm, in the order of first appearance; the first arm is the baseline."""
    arms: dict[str, list[RunRecord]] = {}
    for run in runs:
        arms.setdefault(run.arm, []).append(run)
    return arms


def common_timing(runs: Sequence[RunRecord]) -> str:
    """How the runs were timed: `modelled`, `measured`, or `unknown` when nothing was timed. Raises UsageError when they do not
    agree."""
    timings = sorted({run.timing for run in runs if run.timing is not None})
    if len(timings) > 1:
        raise UsageError(f"the runs mix {' and '.join(timings)} times; report them apart")
    return timings[0] if timings else "unknown"


def same_reward(runs: Sequence[RunRecord]) -> bool:
    """Whether all runs are paid by the same reward with the same values. Only then can their rewards be compared."""
    return len({json.dumps(run.manifest.get("run", {}).get("reward"), sort_keys=True) for run in runs}) <= 1


def comparable(runs: Sequence[RunRecord], columns: Sequence[Metric] = METRICS) -> tuple[Metric, ...]:
    """The columns in which these runs can stand side by side: without the rewards where they are paid by different ones."""
    return tuple(column for column in columns if not is_reward(column.key) or same_reward(runs))


def summarise(runs: Sequence[RunRecord]) -> tuple[ArmSummary, ...]:
    """Sum up every arm. Raises UsageError for modelled and measured times side by side, which must not be compared."""
    common_timing(runs)
    arms = by_arm(runs)
    baseline = next(iter(arms.values()))
    columns = (*comparable(runs), *recorded(runs))
    return tuple(
        _summarise_arm(arm, members, None if members is baseline else baseline, columns) for arm, members in arms.items()
    )


def recorded(runs: Sequence[RunRecord]) -> tuple[Metric, ...]:
    """The optional columns that every measurement of every run has."""
    rows = [row for run in runs for row in run.validation]
    return tuple(metric for metric in OPTIONAL if all(metric.key in row for row in rows))


def columns_of(arms: Sequence[ArmSummary]) -> tuple[Metric, ...]:
    """The columns of a table of these arms: the metrics that their summaries have."""
    return tuple(metric for metric in (*METRICS, *OPTIONAL) if all(metric.key in arm.first for arm in arms))


def _summarise_arm(
    arm: str, members: Sequence[RunRecord], baseline: Sequence[RunRecord] | None, columns: Sequence[Metric]
) -> ArmSummary:
    compared = {m.key: compare_seeds(members, baseline or (), m.key, Window(last=1)) for m in columns}
    return ArmSummary(
        arm=arm,
        seeds=tuple(run.seed for run in members),
        steps=min(run.validation[-1]["step"] for run in members),
        first={m.key: spread([run.validation[0][m.key] for run in members]) for m in columns},
        last={m.key: spread([run.validation[-1][m.key] for run in members]) for m in columns},
        difference={key: found for key, found in compared.items() if found is not None} or None,
    )


@dataclass(frozen=True, slots=True)
class Window:
    """The measurements of a run that are averaged. Exactly one of the fields is set."""

    last: int | None = None
    """The number of measurements at the end."""
    share: float | None = None
    """The share of the steps at the end, whose measurements are meant; several are less noisy than one."""
    step: int | None = None
    """The step of a single measurement."""

    def choose(self, steps: Sequence[int]) -> list[int]:
        """The steps of the window among ascending steps; none when a single step was asked for that is not there.

        >>> Window(share=0.5).choose([0, 5, 10, 15, 20]), Window(last=1).choose([0, 5]), Window(step=5).choose([0, 5])
        ([15, 20], [5], [5])
        """
        if self.step is not None:
            return [step for step in steps if step == self.step]
        if self.share is not None:
            return [step for step in steps if step > (1 - self.share) * steps[-1]]
        return list(steps)[-(self.last or 1) :]


def value(run: RunRecord, key: str, window: Window, among: str = "") -> float | None:
    """The mean of a metric over a window of the validation, or of the training steps for `train/<metric>`; None where it was not
    recorded. among: a part of the names of the validation problems that count."""
    if among:
        chosen_problems = per_problem(run, key, window, among)
        return sum(chosen_problems.values()) / len(chosen_problems) if chosen_problems else None
    rows = run.training if key.startswith("train/") else run.validation
    name = key.removeprefix("train/")
    chosen = set(window.choose([row["step"] for row in rows])) if rows else set()
    values = [row.get(name) for row in rows if row["step"] in chosen]
    known = [float(v) for v in values if v is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def from_one_policy(run: RunRecord, other: RunRecord) -> bool:
    """Whether two runs began from the same policy. Where one of them did not record its weights, that is known of runs on one
    card alone. Where neither did, both are of one piece of work: `experiments.results --add` takes no others."""
    policies = [one.manifest.get("policy") for one in (run, other)]
    if policies[0] == policies[1]:
        return True
    cards = [one.manifest.get("machine", {}).get("cards") for one in (run, other)]
    return not all(policies) and all(cards) and bool(cards[0][0] == cards[1][0])


def paired(runs: Sequence[RunRecord], others: Sequence[RunRecord]) -> list[tuple[RunRecord, RunRecord]]:
    """The runs of two arms that are compared with each other: those of equal seed that began from one policy. What another policy
    does is no difference of arms."""
    other = {run.seed: run for run in others}
    return [(run, other[run.seed]) for run in runs if run.seed in other and from_one_policy(run, other[run.seed])]


def compare_seeds(
    runs: Sequence[RunRecord],
    others: Sequence[RunRecord],
    key: str,
    window: Window,
    other_window: Window | None = None,
    among: str = "",
) -> Comparison | None:
    """Compare runs with others: the differences seed by seed and, where both recorded outcomes, problem by problem. None without
    a pair that has the metric, and for rewards of arms that are paid by different ones. among: a part of the names of the
    problems that count."""
    other_window = other_window or window
    if is_reward(key) and not same_reward([*runs, *others]):
        return None
    bounds = SHARE_DIFFERENCE if is_share(key) else None
    values = [(a, b, value(a, key, window, among), value(b, key, other_window, among)) for a, b in paired(runs, others)]
    differences_S = [x - y for _, _, x, y in values if x is not None and y is not None]
    if not differences_S:
        return None
    known = [(a, b) for a, b, x, y in values if None not in (x, y)]
    tables = [(per_problem(a, key, window, among), per_problem(b, key, other_window, among)) for a, b in known]
    common = sorted(set.intersection(*(set(own) & set(its) for own, its in tables)))
    if not common:
        return compare(differences_S, bounds=bounds)
    return compare(differences_S, np.array([[own[name] - its[name] for name in common] for own, its in tables]), bounds)


def per_problem(run: RunRecord, key: str, window: Window, among: str = "") -> dict[str, float]:
    """The mean of a metric over a window for each problem whose name contains `among`; empty where outcomes do not have it."""
    steps = window.choose(sorted(run.outcomes)) if run.outcomes else []
    if not steps or (key not in (*KEYS, *OPTIONAL_KEYS) and not key.startswith("apparent_")):
        return {}
    rows = [run.outcomes[step] for step in steps]
    everywhere = [name for name in rows[0] if among in name and all(key in row.get(name, ()) for row in rows)]
    return {name: sum(row[name][key] for row in rows) / len(rows) for name in everywhere}
