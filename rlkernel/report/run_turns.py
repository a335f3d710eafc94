"""What the viewer shows of runs."""

from __future__ import annotations

from collections.abc import Sequence

from rlkernel.report.summary import RunRecord, Window, by_arm, per_problem
from rlkernel.report.viewer import Shown, Source
from rlkernel.runs.directory import TRANSCRIPTS
from rlkernel.runs.texts import jsonl

SHARES = ("fast_1", "fast_1.2")
"""What the table of problems shows."""


def of_runs(runs: Sequence[RunRecord]) -> Shown:
    """The turns that runs kept as text; shares of the last validation, means over the seeds of an arm."""
    sources = [
        Source(name, run.arm, run.seed, run.timing, list(jsonl(run.directory / TRANSCRIPTS)))
        for run, name in zip(runs, run_names(runs), strict=True)
    ]
    return Shown(sources, {arm: _measured(members) for arm, members in by_arm(runs).items()})


def run_names(runs: Sequence[RunRecord]) -> list[str]:
    """The directories' names, with a number where several are the same."""
    seen: dict[str, int] = {}
    names = []
    for run in runs:
        name = run.directory.name
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return names


def _measured(members: Sequence[RunRecord]) -> dict[str, list[float]]:
    """Of the problems that all shares of some run have."""
    tables = [[per_problem(run, key, Window(last=1)) for key in SHARES] for run in members]
    known: dict[str, list[list[float]]] = {}
    for shares in tables:
        for name in set.intersection(*map(set, shares)):
            known.setdefault(name, []).append([share[name] for share in shares])
    return {name: [sum(values) / len(values) for values in zip(*rows, strict=True)] for name, rows in known.items()}
