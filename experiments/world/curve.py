"""Draws how policies learn in the world, beside the level of the teacher that they learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.ticker import PercentFormatter

from rlkernel.report.curves import curve
from rlkernel.report.figure import STYLE, colours
from rlkernel.report.summary import RunRecord, by_arm

TITLES = {"fast_1.2_turn_1": "Fast@1.2 on the first turn", "oracle_fraction": "Of the oracle's log-speedup, best turn"}


def draw_learning(runs: Sequence[RunRecord], teacher: Mapping[str, float], path: Path) -> None:
    """Write a PNG of 1500 x 600 pixels: each arm's mean over seeds, their range, and the teacher's level as a dashed line where
    it is known."""
    arms = by_arm(runs)
    colour = colours(list(arms))
    with plt.style.context(STYLE):
        figure, axes = plt.subplots(1, len(TITLES), figsize=(10, 4), layout="constrained")
        for axis, (metric, title) in zip(axes, TITLES.items(), strict=True):
            for arm, members in arms.items():
                if (found := curve(members, metric)) is not None:
                    steps = list(found.means)
                    low, high = zip(*(found.ranges[step] for step in steps), strict=True)
                    axis.plot(steps, list(found.means.values()), color=colour[arm], linewidth=2, label=arm)
                    axis.fill_between(steps, low, high, color=colour[arm], alpha=0.15, linewidth=0)
            if metric in teacher:
                axis.axhline(teacher[metric], color="#555555", linestyle="--", label="the teacher's first drafts")
            axis.set_title(title)
            axis.set_xlabel("step")
            axis.set_ylim(bottom=0)
            axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes[0].legend()
        figure.savefig(path, dpi=150)
        plt.close(figure)


def slope(run: RunRecord, metric: str) -> float:
    """How much a metric rises per step over the last quarter of a run, by its first and last row there, or between its last two
    rows where one alone is there; 0 for one row in all."""
    last = run.validation[-1]["step"]
    rows = [row for row in run.validation if row["step"] >= 0.75 * last]
    rows = rows if len(rows) > 1 else list(run.validation[-2:])
    if len(rows) < 2:
        return 0.0
    return float((rows[-1][metric] - rows[0][metric]) / (rows[-1]["step"] - rows[0]["step"]))
