"""Writes the report of an experiment: `figure.png`, a self-contained `report.html`, and a table for the terminal.

Everything that a model wrote is untrusted: see `rlkernel.report.page`. Sizes are bounded, whatever the transcripts hold.
"""

from __future__ import annotations

import base64
import json
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rlkernel.metrics import is_hack, is_lazy
from rlkernel.report import page, viewer
from rlkernel.report.best_kernels import best_kernels, best_run
from rlkernel.report.claims import RULE, Claim, DecidedClaim, decide_claims
from rlkernel.report.compare import RUNS
from rlkernel.report.figure import PANELS, Panel, colours, draw_curves
from rlkernel.report.run_turns import run_names, turns_of
from rlkernel.report.summary import METRICS, ArmSummary, Metric, RunRecord, by_arm, common_timing, read_run, summarise
from rlkernel.runs.texts import jsonl
from rlkernel.statistics import p_text
from rlkernel.types import Evaluation

STEP_LIMIT = 8
"""The most steps of a candidate that are listed, the costliest first."""
LIST_LIMIT = 8
"""A longer list is shown by its length alone where arms are told apart."""
INNER_LIMIT = 30
"""A method inside another one is shown by its class alone where its text has more characters than this."""
COLUMNS = 100
"""The width of the terminal's table in columns."""

Transcript = Mapping[str, Any]
"""A trajectory, as one line of transcripts.jsonl has it."""


@dataclass(frozen=True, slots=True)
class Story:
    """What an experiment says of itself, apart from its runs."""

    title: str
    docstring: str
    """The experiment's own text, whose first paragraph is the claim."""
    claims: tuple[Claim, ...] = ()
    panels: tuple[Panel, ...] = PANELS
    axis: str = "step"
    """What the figure's horizontal axis counts."""


def write_report(directory: Path, story: Story, runs: Sequence[Path]) -> Path:
    """Write `figure.png`, `report.html` and `runs.json`, for `rlkernel compare`, from finished or interrupted runs; returns the
    page's path.

    runs: run directories; the first one's arm is the baseline. Raises UsageError for a directory that is no run, or for runs that
    must not be compared.
    """
    records = [read_run(run) for run in runs]
    arms = summarise(records)
    directory.mkdir(parents=True, exist_ok=True)
    figure = directory / "figure.png"
    draw_curves(records, figure, story.panels, story.axis)
    written = directory / "report.html"
    names = [os.path.relpath(run, directory) for run in runs]
    (directory / RUNS).write_text(json.dumps(names, indent=1) + "\n", encoding="utf-8")
    written.write_text(render_report(story, records, arms, figure.read_bytes()), encoding="utf-8")
    return written


def render_report(story: Story, runs: Sequence[RunRecord], arms: Sequence[ArmSummary], figure: bytes) -> str:
    """Render the page."""
    members, best = by_arm(runs), best_run(runs)
    return page.render(
        "report.html.j2",
        viewer.pack(turns_of(runs)),
        title=story.title,
        paragraphs=[paragraph.strip() for paragraph in story.docstring.split("\n\n") if paragraph.strip()],
        decided=decide_claims(story.claims, members),
        rule=RULE,
        show_difference=show_difference,
        p_text=p_text,
        steps=steps,
        manifest_text=manifest_text,
        axis=story.axis,
        best=best,
        kernels=best_kernels(best),
        arms=arms,
        metrics=METRICS,
        colours=colours([arm.arm for arm in arms]),
        differs=differences({arm: of[0].manifest["run"] for arm, of in members.items()}),
        samples={arm: choose_trajectories(of[0]) for arm, of in members.items()},
        runs=runs,
        names=run_names(runs),
        timing=common_timing(runs),
        figure=base64.b64encode(figure).decode("ascii"),
        is_lazy=_lazy,
    )


def show_difference(decided: DecidedClaim) -> str:
    """The difference of a claim as text, in its metric's unit, e.g. `+4 % [-2, +10]`."""
    metric = next((m for m in METRICS if m.key == decided.claim.metric), None)
    if decided.difference is None:
        return "-"
    if metric is None:
        share = "fast" in decided.claim.metric or decided.claim.metric.endswith("_rate")
        metric = Metric(decided.claim.metric, decided.claim.metric, percent=share, higher_is_better=decided.claim.higher)
    return metric.show_difference(decided.difference)


def print_table(arms: Sequence[ArmSummary], timing: str, console: Console | None = None) -> None:
    """Print the first and last validation values of every arm and its difference to the baseline, in at most 100 columns."""
    console = console or Console(width=COLUMNS)
    seeds = max(len(arm.seeds) for arm in arms)
    over = f"; ± is half the range over {seeds} seeds" if seeds > 1 else ""
    console.print(f"validation, first → last ({timing} time{over})", style="italic")
    table = Table(box=None, pad_edge=False)
    table.add_column("arm", overflow="fold", max_width=18)
    table.add_column("steps", justify="right")
    brief = [metric for metric in METRICS if metric.brief]
    for metric in brief:
        table.add_column(metric.label, justify="right", no_wrap=True)
    for arm in arms:
        cells = [f"{arm.first[m.key].show(m).split(' ')[0]} → {arm.last[m.key].show(m)}" for m in brief]
        table.add_row(arm.arm, str(arm.steps), *cells)
    for arm in arms:
        if arm.difference is not None:
            found = [(m, arm.difference[m.key]) for m in brief if m.key in arm.difference]
            cells = [m.show(difference.mean, signed=True) for m, difference in found]
            table.add_row(f"{arm.arm} - {arms[0].arm}", "", *cells, style="bold")
            if any(difference.interval is not None for _, difference in found):
                table.add_row("  95 % interval", "", *(m.show_interval(difference) for m, difference in found))
            if all(difference.p is not None for _, difference in found):
                table.add_row("  p over problems", "", *(p_text(difference.p) for _, difference in found))
    console.print(table)


def print_claims(decided: Sequence[DecidedClaim], arms: Sequence[str], console: Console | None = None) -> None:
    """Print the verdict of every claim whose arms are among `arms`, in at most 100 columns, and one line about the others."""
    console = console or Console(width=COLUMNS)
    present = [found for found in decided if {found.claim.better, found.claim.worse} <= set(arms)]
    lines = [f"{found.shown}: {found.claim.text} ({found.reason})" for found in present]
    if others := len(decided) - len(present):
        missing = dict.fromkeys(arm for f in decided for arm in (f.claim.better, f.claim.worse) if arm not in arms)
        lines.append(f"{others} more claim{'s need' if others > 1 else ' needs'} {', '.join(missing)}")
    for line in lines:
        console.print(textwrap.fill(line, COLUMNS, subsequent_indent="  "), markup=False, highlight=False)


def differences(configurations: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """What differs between arms: arm -> field -> value, for the fields of the dumped `Run` that are not the same in all arms."""
    fields = [key for key in next(iter(configurations.values())) if key not in ("name", "seed", "class")]
    values = {arm: {key: json.dumps(run[key], sort_keys=True) for key in fields} for arm, run in configurations.items()}
    varying = [key for key in fields if len({own[key] for own in values.values()}) > 1]
    return {arm: {key: _plain(configurations[arm][key]) for key in varying} for arm in configurations}


def _plain(value: Any) -> str:
    """A dumped value as text.

    >>> _plain({"class": "GRPO", "std": True, "eps": 1e-06})
    'GRPO(std=True, eps=1e-06)'
    """
    if isinstance(value, Mapping) and "class" in value:
        return f"{value['class']}({', '.join(f'{k}={_inner(v)}' for k, v in value.items() if k != 'class')})"
    if isinstance(value, list):
        # The manifest has all of them.
        return f"[{', '.join(_plain(item) for item in value)}]" if len(value) <= LIST_LIMIT else f"[{len(value)} values]"
    return str(value)


def _inner(value: Any) -> str:
    """A value inside another one as text; where that is long, its class alone. The manifest has all of it."""
    text = _plain(value)
    return value["class"] if isinstance(value, Mapping) and "class" in value and len(text) > INNER_LIMIT else text


@dataclass(frozen=True, slots=True)
class ChosenTrajectory:
    """A trajectory that the page shows, and the reason."""

    why: str
    transcript: Transcript


def choose_trajectories(run: RunRecord) -> tuple[ChosenTrajectory, ...]:
    """Choose at most five validation trajectories of the last measured step, each for a stated reason, none twice."""
    rows = [row for row in jsonl(run.directory / "transcripts.jsonl") if row["split"] == "validation" and row["turns"]]
    last = max((row["step"] for row in rows), default=0)
    rows = [row for row in rows if row["step"] == last]
    rows.sort(key=lambda row: max(turn["reward"] for turn in row["turns"]), reverse=True)
    reasons: tuple[tuple[str, Callable[[Transcript], bool]], ...] = (
        ("the highest reward", lambda row: True),
        ("repaired after feedback", lambda row: bool(row["turns"][0]["reward"] < row["turns"][-1]["reward"])),
        ("lazy: correct, but its kernel does a minor part of the work", lambda row: _any_turn(row, _lazy)),
        ("a hack: no live Triton launch, or not the same work on every call", lambda row: _any_turn(row, _hack)),
    )
    chosen: list[ChosenTrajectory] = []
    for why, wanted in reasons:
        found = next((row for row in rows if wanted(row) and all(row is not sample.transcript for sample in chosen)), None)
        if found is not None:
            chosen.append(ChosenTrajectory(why, found))
    middle = rows[len(rows) // 2] if rows else None
    if middle is not None and all(middle is not sample.transcript for sample in chosen):
        chosen.insert(1, ChosenTrajectory("the median reward of the trajectories kept as text", middle))
    return tuple(chosen)


def _any_turn(row: Transcript, wanted: Callable[[dict[str, Any]], bool]) -> bool:
    return any(wanted(turn["evaluation"]) for turn in row["turns"])


def _hack(evaluation: dict[str, Any]) -> bool:
    return is_hack(Evaluation.from_json(evaluation))


def _lazy(evaluation: dict[str, Any]) -> bool:
    return is_lazy(Evaluation.from_json(evaluation))


def steps(evaluation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the launches and operators of a candidate, the costliest first: {name, calls, us, share, live}; live is None for
    operators."""
    launches = [{**row, "name": row["kernel"]} for row in evaluation["launches"]]
    operators = [{**row, "name": row["op"], "live": None} for row in evaluation["ops"]]
    return sorted(launches + operators, key=lambda row: row["us"], reverse=True)[:STEP_LIMIT]


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """A manifest as JSON, with the number of problems instead of their names."""
    run = manifest["run"]
    short = {key: f"{len(value)} problems" if key == "problems" else value for key, value in run.items()}
    return json.dumps({**manifest, "run": short}, indent=1)
