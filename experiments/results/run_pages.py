"""Writes a page per run: what ran, its validations step by step, and trajectories of the last one, each for a stated reason.

So a reader who doubts a number finds the run, its seed and what its policy wrote. Experiments share runs, and their pages. The
pages are made from run directories alone: `--again` leaves them as they are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.checked_in import MANIFESTS
from experiments.results.turns import shortened, turn_lines
from rlkernel.report.columns import METRICS, OPTIONAL
from rlkernel.report.samples import ChosenTrajectory, choose_trajectories
from rlkernel.report.summary import RunRecord
from rlkernel.runs.directory import TRANSCRIPTS

FOLDER = "runs"
"""The folder of these pages, beside those of experiments."""


def write_run_pages(runs: Iterable[RunRecord], out: Path) -> None:
    """Write the pages of these runs below the folder of results, and delete those of runs that no experiment there has."""
    pages = {f"{name_of(run)}.md": run_page(run) for run in runs}
    folder = out / FOLDER
    folder.mkdir(exist_ok=True)
    kept = {f"{name}.md" for manifests in out.glob(f"*/{MANIFESTS}") for name in _named(manifests)}
    for stale in folder.glob("*.md"):
        if stale.name not in kept | pages.keys():
            stale.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")


def copy_run_pages(experiments: Iterable[Path], out: Path, place: Path) -> None:
    """Copy the pages of the runs of these folders of experiments from one folder of results to another."""
    names = {name for one in experiments for name in _named(one / MANIFESTS)} & pages_in(out)
    (place / FOLDER).mkdir(exist_ok=True)
    for name in names:
        shutil.copy(out / FOLDER / f"{name}.md", place / FOLDER)


def _named(manifests: Path) -> list[str]:
    return [_name(one) for one in json.loads(manifests.read_text(encoding="utf-8"))]


def name_of(run: RunRecord) -> str:
    """The name of a run's page without the suffix: that of its directory, as its manifest tells it."""
    return _name({**run.manifest, "arm": run.arm, "seed": run.seed})


def _name(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['arm']}-seed{manifest['seed']}-{manifest['fingerprint'][:8]}"


def commit_of(run: RunRecord) -> str:
    """The first twelve digits of the commit that a run was made with, and whether the tree had changes; empty where it was made
    without a repository."""
    git = run.manifest.get("git") or {}
    return f"`{git['commit'][:12]}`{' and changes' * bool(git.get('dirty'))}" if git.get("commit") else ""


def pages_in(out: Path) -> frozenset[str]:
    """The names of the runs that have a page in a folder of results."""
    return frozenset(path.stem for path in (out / FOLDER).glob("*.md"))


def run_page(run: RunRecord) -> str:
    """One run in Markdown."""
    facts = run.manifest
    machine = ", ".join(facts["machine"]["gpus"]) or "no GPU"
    commit = commit_of(run)
    lines = [
        f"# `{run.arm}`, seed {run.seed}",
        "",
        f"Directory `{name_of(run)}`, finished {facts['finished'][:10]}, {machine}, **{run.timing}** time"
        + (f", commit {commit}" if commit else "")
        + ". Its numbers and its manifest are in `numbers.json` and `manifests.json` of each experiment that has the arm.",
        "",
        "## Validations",
        "",
        *_validations(run),
        "",
        "## Trajectories of the last validation",
        "",
        *_trajectories(choose_trajectories(run)),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _validations(run: RunRecord) -> list[str]:
    columns = [metric for metric in (*METRICS, *OPTIONAL) if all(metric.key in row for row in run.validation)]
    lines = [f"| step | {' | '.join(metric.label for metric in columns)} |", "|---" * (1 + len(columns)) + "|"]
    rows = ([str(row["step"]), *(metric.show(row[metric.key], more=1) for metric in columns)] for row in run.validation)
    return [*lines, *(f"| {' | '.join(cells)} |" for cells in rows)]


def _trajectories(chosen: Sequence[ChosenTrajectory]) -> list[str]:
    if not chosen:
        return ["The run kept none as text."]
    kept = f"The run kept some trajectories as text in `{TRANSCRIPTS}`. These are among them, each with answers and feedback."
    lines = [kept, ""]
    for number, one in enumerate(chosen, start=1):
        lines += [f"### {number} {one.why[0].upper()}{one.why[1:]}", "", *_trajectory(one.transcript)]
    return lines


def _trajectory(row: Mapping[str, Any]) -> list[str]:
    lines = [f"Problem `{row['problem']}`, step {row['step']}.", ""]
    for number, turn in enumerate(row["turns"], start=1):
        lines += turn_lines(shortened(number, turn))
    return lines
