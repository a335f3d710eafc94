"""Writes the report of an experiment: a self-contained `report.html`, and `figure.png` for other places.

Everything that a model wrote is untrusted: see `rlkernel.report.page`. Sizes are bounded, whatever the transcripts hold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlkernel.report import page, samples, viewer
from rlkernel.report.best_kernels import best_kernels, best_run
from rlkernel.report.chart import charts, missing
from rlkernel.report.claims import RULE, Claim, decide_claims
from rlkernel.report.compare import RUNS
from rlkernel.report.configurations import differences, manifest_text
from rlkernel.report.curves import ORACLE, PANELS, Panel, by_split, comparable_panels
from rlkernel.report.figure import draw_curves
from rlkernel.report.findings import finding
from rlkernel.report.run_turns import run_names, turns_of
from rlkernel.report.summary import ArmSummary, RunRecord, by_arm, columns_of, common_timing, read_run, same_reward, summarise
from rlkernel.statistics import p_text

TEMPLATE = Path(__file__).with_name("report.html.j2")


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
    draw_curves(records, directory / "figure.png", story.panels, story.axis)
    written = directory / "report.html"
    names = [os.path.relpath(run, directory) for run in runs]
    (directory / RUNS).write_text(json.dumps(names, indent=1) + "\n", encoding="utf-8")
    written.write_text(render_report(story, records, arms), encoding="utf-8")
    return written


def render_report(story: Story, runs: Sequence[RunRecord], arms: Sequence[ArmSummary]) -> str:
    """Render the page."""
    members, best = by_arm(runs), best_run(runs)
    decided = decide_claims(story.claims, members)
    validation, training = by_split(story.panels)
    training = comparable_panels(runs, training)
    return page.render(
        TEMPLATE,
        viewer.pack(turns_of(runs)),
        title=story.title,
        finding=finding(decided, arms),
        paragraphs=[paragraph.strip() for paragraph in story.docstring.split("\n\n") if paragraph.strip()],
        judged=[found for found in decided if found.judged],
        folded=[found for found in decided if not found.judged],
        rule=RULE,
        p_text=p_text,
        steps=samples.steps,
        manifest_text=manifest_text,
        axis=story.axis,
        best=best,
        kernels=best_kernels(best),
        arms=arms,
        metrics=columns_of(arms),
        paid_alike=same_reward(runs),
        tones={arm.arm: i for i, arm in enumerate(arms)},
        charts=charts(runs, comparable_panels(runs, (*validation, ORACLE)), story.axis),
        training_charts=charts(runs, training, "training step"),
        unrecorded=missing(runs, training),
        differs=differences({arm: of[0].manifest["run"] for arm, of in members.items()}),
        samples={arm: samples.choose_trajectories(of[0]) for arm, of in members.items()},
        runs=runs,
        names=run_names(runs),
        timing=common_timing(runs),
        is_lazy=samples.lazy,
    )
