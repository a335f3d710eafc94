"""The tables of at most 100 columns, the figure and the JSON that `rlkernel compare` shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlkernel.report.columns import Metric
from rlkernel.report.compare import (
    COLUMNS,
    Pair,
    ProblemDifference,
    of_other_policies,
    paid_alike,
    size_differences,
    unfinished,
)
from rlkernel.report.figure import STYLE, colours
from rlkernel.statistics import Interval, p_text

WIDTH = 100
"""The width of the tables in columns."""
NAME_WIDTH = 52
HEAD_WIDTH = 12
MOST_NAMED = 30
"""The most problems whose names are below the figure."""
POINTS = FuncFormatter(lambda value, _: f"{100 * value:+.0f}" if value else "0")
"""Differences of shares in percentage points."""
LEGEND = (
    "[low, high]: 95 %, of differences a bootstrap over problems and seeds, over seeds and per problem",
    "Student's. p: sign flips over problems, not adjusted for the number of rows. problems + = -: with a",
    "difference above, of and below 0. p of one seed is of this pair of runs alone, and is not told.",
)


def show(pairs: Sequence[Pair], timing: str, metric: str, listed: int, console: Console | None = None) -> None:
    """Print the tables of every pair, and what their columns mean. listed: the number of problems of each pair that are shown,
    those with the largest differences; 0 shows none."""
    console = console or Console(width=WIDTH, highlight=False)
    for pair in pairs:
        for line in heading(pair, timing):
            console.print(line, markup=False)
        console.print(_metric_table(pair))
        if listed:
            console.print(_problem_table(pair, next(m for m in COLUMNS if m.key == metric), listed))
        console.print()
    for line in LEGEND:
        console.print(line, markup=False)


def heading(pair: Pair, timing: str) -> list[str]:
    """The lines above a pair's tables: which arms, seeds, steps and problems it is about."""
    one, apart = len(pair.seeds) == 1, of_other_policies(pair.base, pair.other)
    if pair.seeds:
        seeds = f"seed{'' if one else 's'} {', '.join(map(str, pair.seeds))}"
        extra = {side.label: sorted(set(side.runs) - set(pair.seeds)) for side in (pair.base, pair.other)}
        unused = [f"seed {', '.join(map(str, more))} of {label} is left out" for label, more in extra.items() if more]
    else:
        own = [", ".join(map(str, sorted(side.runs))) for side in (pair.other, pair.base)]
        policy = " of one policy" if apart else ""
        seeds, unused = f"no common seed{policy} ({own[0]} and {own[1]}): paired by problem alone", []
    steps = f"step {pair.steps[1]}" if pair.steps[0] == pair.steps[1] else f"step {pair.steps[1]} against {pair.steps[0]}"
    problems = f"{len(pair.problems)} problems" + (f", {pair.left_out} that only one has left out" if pair.left_out else "")
    sizes = size_differences(pair.base, pair.other)
    notice = [f"notice: these runs differ in size: {'; '.join(sizes)}"] if sizes else []
    if apart:
        notice.append(
            f"notice: runs of seed {', '.join(map(str, apart))} began from different policies, and are not paired by seed"
        )
    notice += [f"notice: not finished, so no result: {run}" for run in unfinished(pair)]
    if not paid_alike(pair.base, pair.other):
        notice.append("notice: these arms are paid by different rewards, which are not compared")
    return [f"{pair.other.label} - {pair.base.label}", "; ".join([seeds, steps, problems, f"{timing} time", *unused]), *notice]


def _metric_table(pair: Pair) -> Table:
    table = Table(box=None, pad_edge=False)
    headers = ("", *_names(pair), "difference", "over seeds", "p", "problems + = -")
    for i, header in enumerate(headers):
        table.add_column(header, justify="right" if i else "left", no_wrap=True)
    for row in pair.metrics:
        found, metric = row.difference, row.metric
        table.add_row(
            metric.label,
            metric.show(row.base),
            metric.show(row.other),
            _difference(metric, found.mean, found.bootstrap),
            metric.show_interval(found) or "-",
            p_text(found.told_p) or "-",
            f"{row.higher} {row.equal} {row.lower}",
        )
    return table


def _names(pair: Pair) -> tuple[str, str]:
    """What heads the columns of both arms: their names, or as much of the ends of these as leaves the tables narrow."""
    return _ended(pair.base.label, HEAD_WIDTH), _ended(pair.other.label, HEAD_WIDTH)


def _problem_table(pair: Pair, metric: Metric, listed: int) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(f"problem, {metric.label}", overflow="fold", max_width=NAME_WIDTH)
    for header in (*_names(pair), "difference"):
        table.add_column(header, justify="right", no_wrap=True)
    rows = largest(pair.problems, listed)
    for row in rows:
        cells = (metric.show(row.base), metric.show(row.other), _difference(metric, row.difference, row.interval))
        table.add_row(Text(row.problem), *cells)
    if len(rows) < len(pair.problems):
        table.add_row(f"and {len(pair.problems) - len(rows)} with smaller differences", "", "", "")
    return table


def largest(rows: Sequence[ProblemDifference], count: int) -> list[ProblemDifference]:
    """The `count` problems with the largest absolute differences, in the order of the differences."""
    chosen = sorted(rows, key=lambda row: -abs(row.difference))[:count]
    return sorted(chosen, key=lambda row: (-row.difference, row.problem))


def _difference(metric: Metric, mean: float, interval: Interval | None) -> str:
    shown = metric.show(mean, signed=True)
    if interval is None:
        return shown
    low, high = (metric.show(value, signed=True).removesuffix(" %") for value in (interval.low, interval.high))
    return f"{shown} [{low}, {high}]"


def draw_differences(pairs: Sequence[Pair], timing: str, metric: str, path: Path) -> None:
    """Write a PNG of 1500 x 825 pixels: the shares of every arm against the baseline, and the problems by their difference."""
    colour = colours([pairs[0].base.label, *(pair.other.label for pair in pairs)])
    with plt.style.context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5.5), layout="constrained")
        _draw_metrics(left, pairs, colour)
        _draw_problems(right, pairs, next(m for m in COLUMNS if m.key == metric), colour)
        handles, names = left.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=4 if max(map(len, names)) < 18 else 2)
        figure.suptitle(
            f"Differences to {pairs[0].base.label}, {timing} time; bars: 95 %", fontsize=11, color="#555555", x=0.01, ha="left"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _draw_metrics(axis: Axes, pairs: Sequence[Pair], colour: dict[str, str]) -> None:
    labels = list(dict.fromkeys(row.metric.label for pair in pairs for row in pair.metrics if row.metric.percent))
    axis.axvline(0, color="#888888", linewidth=1)
    for i, pair in enumerate(pairs):
        rows = [row for row in pair.metrics if row.metric.percent]
        shift = 0.5 * ((i + 1) / (len(pairs) + 1) - 0.5)
        for row in rows:
            interval, y = row.difference.bootstrap, labels.index(row.metric.label) + shift
            if interval is not None:
                axis.plot([interval.low, interval.high], [y, y], color=colour[pair.other.label], linewidth=2)
        means, places = [row.difference.mean for row in rows], [labels.index(row.metric.label) + shift for row in rows]
        axis.plot(means, places, "o", color=colour[pair.other.label], label=_short(pair.other.label))
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    axis.xaxis.set_major_formatter(POINTS)
    axis.set_title("Mean over problems")
    axis.set_xlabel("percentage points; over problems and seeds")


def _draw_problems(axis: Axes, pairs: Sequence[Pair], metric: Metric, colour: dict[str, str]) -> None:
    axis.axhline(0, color="#888888", linewidth=1)
    for i, pair in enumerate(pairs):
        tone, shift = colour[pair.other.label], 0.6 * ((i + 1) / (len(pairs) + 1) - 0.5)
        places = [place + shift for place in range(1, len(pair.problems) + 1)]
        for x, row in zip(places, pair.problems, strict=True):
            if row.interval is not None:
                axis.plot([x, x], [row.interval.low, row.interval.high], color=tone, alpha=0.3, linewidth=1)
        axis.plot(places, [row.difference for row in pair.problems], "o", markersize=4, color=tone)
    # An interval over two seeds may be wider than all differences together.
    most = max((abs(row.difference) for pair in pairs for row in pair.problems), default=0.0) or 1.0
    room = min(1.6 * most, 1.05) if metric.percent else 1.6 * most
    axis.set_ylim(-room, room)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(pairs) == 1 and len(pairs[0].problems) <= MOST_NAMED:
        names = [_short(row.problem.removesuffix(".py").rpartition("/")[2]) for row in pairs[0].problems]
        axis.set_xticks(range(1, len(names) + 1), names, rotation=60, ha="right", fontsize=7)
    if metric.percent:
        axis.yaxis.set_major_formatter(POINTS)
    axis.set_title(f"{metric.label}, problem by problem")
    axis.set_ylabel("difference in percentage points" if metric.percent else "difference")
    axis.set_xlabel("problems; bars: over seeds")


def _short(label: str) -> str:
    """Shorten a label to its end, which tells a directory apart from others.

    >>> _short("runs/arms/grpo-seed0-0123456789abcdef")
    '...grpo-seed0-0123456789abcdef'
    """
    return _ended(label, 30)


def _ended(label: str, width: int) -> str:
    return label if len(label) <= width else f"...{label[3 - width :]}"


def to_json(pairs: Sequence[Pair], timing: str, metric: str) -> dict[str, Any]:
    """The comparison as plain values, for other programs."""

    def interval(value: Interval | None) -> list[float] | None:
        return None if value is None else [value.low, value.high]

    return {
        "timing": timing,
        "metric": metric,
        "pairs": [
            {
                "base": pair.base.label,
                "other": pair.other.label,
                "seeds": list(pair.seeds),
                "steps": list(pair.steps),
                "sizes": size_differences(pair.base, pair.other),
                "seeds_of_other_policies": of_other_policies(pair.base, pair.other),
                "unfinished": unfinished(pair),
                "same_reward": paid_alike(pair.base, pair.other),
                "metrics": {
                    row.metric.key: {
                        "base": row.base,
                        "other": row.other,
                        "difference": row.difference.mean,
                        "over_seeds": interval(row.difference.interval),
                        "over_seeds_and_problems": interval(row.difference.bootstrap),
                        "p_over_problems": row.difference.p,
                        "higher_equal_lower": [row.higher, row.equal, row.lower],
                    }
                    for row in pair.metrics
                },
                "problems": {
                    row.problem: {
                        "base": row.base,
                        "other": row.other,
                        "difference": row.difference,
                        "over_seeds": interval(row.interval),
                    }
                    for row in pair.problems
                },
            }
            for pair in pairs
        ],
    }
