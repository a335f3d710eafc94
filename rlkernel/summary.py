"""What the runs of an experiment say, arm by arm: read from the run directories, with the spread over seeds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlkernel.errors import UsageError

Row = Mapping[str, Any]
"""One line of metrics.jsonl."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A column of the comparison. Every validation row has it."""

    key: str
    label: str
    percent: bool
    higher_is_better: bool
    brief: bool = True
    """Whether the terminal's table, which is narrow, has it too."""

    def show(self, value: float, signed: bool = False) -> str:
        """
        >>> METRICS[1].show(0.456), METRICS[0].show(-0.25, signed=True)
        ('46 %', '-0.25')
        """
        sign = "+" if signed else ""
        return f"{100 * value:{sign}.0f} %" if self.percent else f"{value:{sign}.2f}"


METRICS = (
    Metric("reward", "Reward", percent=False, higher_is_better=True),
    Metric("fast_1", "Fast@1", percent=True, higher_is_better=True),
    Metric("fast_1.2", "Fast@1.2", percent=True, higher_is_better=True),
    Metric("fast_1.2_turn_1", "Fast@1.2, turn 1", percent=True, higher_is_better=True, brief=False),
    Metric("hacking_rate", "Hacking", percent=True, higher_is_better=False),
    Metric("lazy_rate", "Lazy", percent=True, higher_is_better=False),
)
REQUIRED = (*(metric.key for metric in METRICS), "fast_1_turn_1")
"""What a validation row must have for the tables and the figure."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run directory, read."""

    directory: Path
    arm: str
    seed: int
    timing: str | None
    """`modelled` or `measured`; None when no candidate was ever timed."""
    manifest: Mapping[str, Any]
    validation: tuple[Row, ...]
    """In the order of steps, one row per step."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Values of one quantity over seeds. Few seeds do not support a confidence interval, so half the range is shown."""

    mean: float
    half_range: float
    seeds: int

    def show(self, metric: Metric, signed: bool = False) -> str:
        if self.seeds < 2:
            return metric.show(self.mean, signed)
        value, half = metric.show(self.mean, signed), metric.show(self.half_range)
        return f"{value.removesuffix(' %')} ± {half}"


def spread(values: Sequence[float]) -> Spread:
    """
    >>> spread([1.0, 2.0])
    Spread(mean=1.5, half_range=0.5, seeds=2)
    """
    return Spread(sum(values) / len(values), (max(values) - min(values)) / 2, len(values))


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm over its seeds; the dictionaries are keyed by `Metric.key`."""

    arm: str
    seeds: tuple[int, ...]
    steps: int
    """At the last validation, the least of the seeds."""
    first: Mapping[str, Spread]
    last: Mapping[str, Spread]
    difference: Mapping[str, Spread] | None
    """Last values minus those of the baseline arm, seed by seed (equal seeds see equal data); None for the baseline and for
    arms that share no seed with it."""


def read_run(directory: Path) -> RunRecord:
    """Raises UsageError naming the file when the run has no manifest or no validation yet."""
    manifest = _json(directory / "manifest.json")
    rows = {row["step"]: row for row in jsonl(directory / "metrics.jsonl") if row["split"] == "validation"}
    if not rows:
        raise UsageError(f"{directory / 'metrics.jsonl'}: no validation row yet; let the run measure once")
    validation = tuple(rows[step] for step in sorted(rows))
    for row in validation:
        for key in REQUIRED:
            if key not in row:
                raise UsageError(f"{directory / 'metrics.jsonl'}: the validation row of step {row['step']} lacks {key!r}")
    return RunRecord(directory, manifest["arm"], manifest["seed"], manifest["timing"], manifest, validation)


def jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Raises UsageError naming file and line."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise UsageError(f"{path}, line {number}: not JSON: {error}; resume the run to mend it") from None
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; give the directory of a run") from None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; give the directory of a run") from None
    except ValueError as error:
        raise UsageError(f"{path}: not JSON: {error}") from None


def by_arm(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """In the order of first appearance; the first arm is the baseline."""
    arms: dict[str, list[RunRecord]] = {}
    for run in runs:
        arms.setdefault(run.arm, []).append(run)
    return arms


def common_timing(runs: Sequence[RunRecord]) -> str:
    """`modelled` or `measured`, `unknown` when nothing was timed. Raises UsageError when the runs do not agree."""
    timings = sorted({run.timing for run in runs if run.timing is not None})
    if len(timings) > 1:
        raise UsageError(f"the runs mix {' and '.join(timings)} times; report them apart")
    return timings[0] if timings else "unknown"


def summarise(runs: Sequence[RunRecord]) -> tuple[ArmSummary, ...]:
    """One summary per arm. Raises UsageError for modelled and measured times side by side, which must not be compared."""
    common_timing(runs)
    arms = by_arm(runs)
    baseline = next(iter(arms.values()))
    return tuple(_summarise_arm(arm, members, None if members is baseline else baseline) for arm, members in arms.items())


def _summarise_arm(arm: str, members: Sequence[RunRecord], baseline: Sequence[RunRecord] | None) -> ArmSummary:
    final = {run.seed: run.validation[-1] for run in baseline or ()}
    pairs = [(run.validation[-1], final[run.seed]) for run in members if run.seed in final]
    return ArmSummary(
        arm=arm,
        seeds=tuple(run.seed for run in members),
        steps=min(run.validation[-1]["step"] for run in members),
        first={m.key: spread([run.validation[0][m.key] for run in members]) for m in METRICS},
        last={m.key: spread([run.validation[-1][m.key] for run in members]) for m in METRICS},
        difference={m.key: spread([own[m.key] - other[m.key] for own, other in pairs]) for m in METRICS} if pairs else None,
    )
