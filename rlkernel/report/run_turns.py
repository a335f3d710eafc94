"""Reads the turns that runs kept as text, for the viewer."""

from __future__ import annotations

from collections.abc import Sequence

from rlkernel.report.summary import RunRecord, Window, by_arm, per_problem
from rlkernel.report.viewer import Source, ViewerContent
from rlkernel.runs.directory import TRANSCRIPTS
from rlkernel.runs.texts import jsonl

SHARES = ("fast_1", "fast_1.2")
"""The metrics in the viewer's table of problems."""


def turns_of(runs: Sequence[RunRecord]) -> ViewerContent:
    """Everything that the viewer shows of runs: the turns that they kept as text, and each problem's shares in the last
    validation, as means over the seeds of an arm."""
    sources = [
        Source(name, run.arm, run.seed, run.timing, list(jsonl(run.directory / TRANSCRIPTS)))
        for run, name in zip(runs, run_names(runs), strict=True)
    ]
    return ViewerContent(sources, {arm: _measured(members) for arm, members in by_arm(runs).items()})


def run_names(runs: Sequence[RunRecord]) -> list[str]:
    """The names of the runs' directories, with a number where several are the same."""
    seen: dict[str, int] = {}
    names = []
    for run in runs:
        name = run.directory.name
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return names


def _measured(members: Sequence[RunRecord]) -> dict[str, list[float]]:
    """The shares of one arm's problems, those for which some run has all of them."""
    tables = [[per_problem(run, key, Window(last=1)) for key in SHARES] for run in members]
    known: dict[str, list[list[float]]] = {}
    for shares in tables:
        for name in set.intersection(*map(set, shares)):
            known.setdefault(name, []).append([share[name] for share in shares])
    return {name: [sum(values) / len(values) for values in zip(*rows, strict=True)] for name, rows in known.items()}
