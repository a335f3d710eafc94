"""Draws the figure of an experiment: validation curves, with one colour per arm. Seeds are thin lines, their mean is a bold one,
their range a band."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draws to files; without it, importing pyplot may look for a display

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, PercentFormatter

from rlkernel.report.curves import PANELS, Line, Panel, comparable_panels, curve
from rlkernel.report.summary import RunRecord, by_arm, common_timing

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A", "#7F7F7F", "#5E3C99")
"""Okabe and Ito's palette, which most colour-blind readers can tell apart, and three more for experiments with many arms."""
BANDS = 4
"""The most arms whose range over seeds is shaded; more would hide each other."""
WIDE = 18
"""Arms with names of this many characters do not fit side by side in fours."""


STYLE = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "axes.edgecolor": "#888888",
    "legend.frameon": False,
}


def colours(arms: Sequence[str]) -> dict[str, str]:
    """The colour of each arm, which is the same in every figure and table of a report."""
    return {arm: COLOURS[i % len(COLOURS)] for i, arm in enumerate(arms)}


def draw_curves(
    runs: Sequence[RunRecord], path: Path, panels: Sequence[Panel] = PANELS, axis_label: str = "step", caption: str = ""
) -> None:
    """Write a PNG of 1500 x 1080 pixels with four panels and the legend of arms below. caption: what policy it is about, by
    default its name. A metric that a run did not record is left out."""
    arms = by_arm(runs)
    colour = colours(list(arms))
    with plt.style.context(STYLE):
        # A tick per measurement, as long as they do not crowd.
        steps = sorted({row["step"] for run in runs for row in run.validation})
        ticks = FixedLocator(steps) if len(steps) <= 11 else MaxNLocator(integer=True)
        figure, axes = plt.subplots(2, 2, figsize=(10, 7.2), layout="constrained", sharex=True)
        for axis, panel in zip(axes.flat, comparable_panels(runs, panels), strict=True):
            axis.set_title(panel.title)
            drawn = set()
            for arm, members in arms.items():
                for key, style, label in panel.lines:
                    if _curve(axis, members, key, colour[arm], style, band=len(arms) <= BANDS):
                        drawn.add(label)
            axis.xaxis.set_major_locator(ticks)
            if panel.share:
                axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            if panel.log:
                axis.set_yscale("symlog", linthresh=1)
                axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axis.set_ylim(bottom=0)
            if len(panel.lines) > 1 and axis is not axes[0, 0]:
                axis.legend(handles=[_handle(style, label) for _, style, label in panel.lines if label in drawn], loc="best")
        for axis in axes[1]:
            axis.set_xlabel(axis_label)
        handles = [_handle("-", _label(arm, members), colour[arm]) for arm, members in arms.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=4 if max(map(len, arms)) < WIDE else 3)
        about = caption or f"policy {', '.join(sorted({str(run.manifest['run'].get('model')) for run in runs}))[:60]}"
        split = "Validation split and training" if any(panel.trains for panel in panels) else "Validation split"
        title = f"{split}, {common_timing(runs)} time; {about}"
        figure.suptitle(title, fontsize=11, color="#555555", x=0.01, ha="left")
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _label(arm: str, members: Sequence[RunRecord]) -> str:
    return f"{arm} ({len(members)} seed{'s' if len(members) > 1 else ''})"


def _handle(style: Line, label: str, colour: str = "#555555") -> Line2D:
    return Line2D([], [], color=colour, linestyle=style, linewidth=2.4, label=label)


def _curve(axis: Axes, members: Sequence[RunRecord], key: str, colour: str, style: Line, *, band: bool) -> bool:
    """Draw one metric of an arm. Whether there was something to draw: every member has the metric."""
    found = curve(members, key)
    if found is None:
        return False
    if len(found.seeds) > 1:
        for points in found.seeds:
            axis.plot(list(points), list(points.values()), color=colour, linestyle=style, linewidth=0.8, alpha=0.45)
    steps, ranges = list(found.means), list(found.ranges.values())
    if band:
        lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
        axis.fill_between(steps, lows, highs, color=colour, alpha=0.12, linewidth=0)
    marker = None if key.startswith("train/") else "o"
    axis.plot(
        steps,
        list(found.means.values()),
        color=colour,
        linestyle=style,
        linewidth=2.4,
        marker=marker,
        markersize=4,
        clip_on=False,
    )
    return True
