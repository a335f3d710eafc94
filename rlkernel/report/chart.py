"""Charts of curves as inline SVG, in the page's own colours, with the numbers that a cursor reads.

The geometry is here, the markup in charts.html.j2, and the cursor in chart.js. Lengths are in the units of the view box.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from rlkernel.report.curves import Curve, Panel, curve
from rlkernel.report.figure import BANDS
from rlkernel.report.summary import RunRecord, by_arm

WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 50, 12, 12, 30
"""The margins around the plot."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis, and its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class DrawnCurve:
    """A curve of an arm as lists of points, each `x,y x,y ...`."""

    colour: int
    """The position of the arm, which chooses the colour."""
    dashed: bool
    mean: str
    seeds: tuple[str, ...]
    band: str
    """The outline of the range over seeds; empty where there is none."""
    marks: tuple[tuple[float, float], ...]
    """The places of the measurements; none for a training of several steps, which has one at each."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One panel, ready to be drawn."""

    title: str
    zero: bool
    """Whether every value is 0, so that the title says it all."""
    about: str
    """What a reader who does not see the drawing is told."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    curves: tuple[DrawnCurve, ...]
    legend: tuple[tuple[str, bool], ...]
    """The texts of the line styles, and whether the line is dashed; empty where all lines mean the same."""
    readings: str
    """JSON for the cursor: {"x": [...], "steps": [...], "lines": [{"label", "colour", "values": [text or null], "y": [...]}]}."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """Turns steps and values into places."""

    steps: tuple[int, int]
    values: tuple[float, float]
    log: bool

    def x(self, step: float) -> float:
        low, high = self.steps
        share = (step - low) / (high - low) if high > low else 0.5  # one step stands in the middle
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        low, high = (_place(limit, self.log) for limit in self.values)
        return round(HEIGHT - BOTTOM - (_place(value, self.log) - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    def points(self, values: Mapping[int, float]) -> str:
        return " ".join(f"{self.x(step)},{self.y(value)}" for step, value in values.items())


def _place(value: float, log: bool) -> float:
    """A value on an axis that is logarithmic above 1 in size, or linear."""
    return math.copysign(math.log10(1 + abs(value)), value) if log else value


def charts(runs: Sequence[RunRecord], panels: Sequence[Panel], axis: str) -> tuple[Chart, ...]:
    """The panels of which some arm recorded something, drawn. axis: what the horizontal axis counts."""
    return tuple(found for panel in panels if (found := _chart(runs, panel, axis)) is not None)


def missing(runs: Sequence[RunRecord], panels: Sequence[Panel]) -> tuple[str, ...]:
    """The titles of the panels of which no arm recorded anything."""
    return tuple(panel.title for panel in panels if not _curves(by_arm(runs), panel))


def _curves(arms: Mapping[str, Sequence[RunRecord]], panel: Panel) -> list[tuple[int, str, str, bool, Curve]]:
    """The curves of a panel, each as (position of the arm, arm, text of the line, dashed?, curve)."""
    found = [
        (i, arm, label, style == "--", curve(members, key))
        for i, (arm, members) in enumerate(arms.items())
        for key, style, label in panel.lines
    ]
    whole = [(i, arm, label, dashed, one) for i, arm, label, dashed, one in found if one is not None and _finite(one)]
    return [(i, arm, label, dashed, _floored(one, panel.floor)) for i, arm, label, dashed, one in whole]


def _floored(found: Curve, floor: float) -> Curve:
    """A curve whose values are 0 where they are smaller than a floor."""

    def cut(value: float) -> float:
        return value if abs(value) >= floor else 0.0

    ranges = {step: (cut(low), cut(high)) for step, (low, high) in found.ranges.items()}
    means = {step: cut(value) for step, value in found.means.items()}
    return Curve(tuple({step: cut(value) for step, value in points.items()} for points in found.seeds), means, ranges)


def _finite(found: Curve) -> bool:
    return all(math.isfinite(value) for points in found.seeds for value in points.values()) and bool(found.means)


def _chart(runs: Sequence[RunRecord], panel: Panel, axis: str) -> Chart | None:
    arms = by_arm(runs)
    found = _curves(arms, panel)
    if not found:
        return None
    values = [value for *_, one in found for points in one.seeds for value in points.values()]
    steps = sorted({step for *_, one in found for points in one.seeds for step in points})
    y_ticks = _value_ticks(min(0.0, *values), max(values), panel)
    limits = (min(0.0, *values, y_ticks[0]), max(*values, y_ticks[-1]))
    scale = _Scale((steps[0], steps[-1]), limits if limits[1] > limits[0] else (limits[0], limits[0] + 1), panel.log)
    drawn = tuple(_draw(i, dashed, one, scale, panel, len(arms) <= BANDS) for i, _, _, dashed, one in found)
    title = panel.title + (f" (below {panel.floor:g}: numerics alone)" if panel.floor and not any(values) else "")
    styles = tuple(dict.fromkeys((label, dashed) for _, _, label, dashed, _ in found if label))
    return Chart(
        title,
        not any(values),
        f"{title} over {axis}s: {_ends(found, panel)}",
        tuple(Tick(scale.x(step), str(step)) for step in _step_ticks(steps)),
        tuple(Tick(scale.y(value), _text(value, panel.share)) for value in y_ticks),
        drawn,
        styles if len(panel.lines) > 1 else (),
        _readings(found, scale, panel),
    )


def _draw(i: int, dashed: bool, found: Curve, scale: _Scale, panel: Panel, band: bool) -> DrawnCurve:
    several = len(found.seeds) > 1
    low = scale.points({step: low for step, (low, _) in found.ranges.items()})
    high = scale.points({step: high for step, (_, high) in reversed(list(found.ranges.items()))})
    places = tuple((scale.x(step), scale.y(value)) for step, value in found.means.items())
    marks = () if panel.trains and len(places) > 1 else places
    seeds = tuple(map(scale.points, found.seeds)) if several else ()
    return DrawnCurve(i, dashed, scale.points(found.means), seeds, f"{low} {high}" if several and band else "", marks)


def _value_ticks(low: float, high: float, panel: Panel) -> list[float]:
    if panel.log:
        return [0.0, *(10.0**k for k in range(math.ceil(math.log10(1 + high)) + 1))]
    if high == low and not panel.share:  # 0 throughout, which has no scale
        return [0.0]
    span = high - low if high > low else 1.0
    ticks = MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, low + span)
    return [float(tick) for tick in ticks if not panel.share or -1e-9 <= tick <= 1 + 1e-9]


def _step_ticks(steps: Sequence[int]) -> list[int]:
    """At most eight of the steps, evenly chosen, the first and the last of all among them where they are evenly many."""
    stride = -(-len(steps) // 8)
    return list(steps[::stride])


def _text(value: float, share: bool) -> str:
    """A value in few digits.

    >>> _text(0.075, True), _text(0.0001234, False), _text(12345.0, False)
    ('7.5 %', '0.00012', '12,345')
    """
    if share:
        return f"{100 * value:.3g} %"
    return f"{value:,.0f}" if 100 <= abs(value) < 1e6 else f"{value + 0.0:.2g}"


def _reading(value: float, share: bool) -> str:
    """A value as the cursor shows it.

    >>> _reading(0.2567, True), _reading(0.0001234, False), _reading(1.5, False)
    ('25.7 %', '0.0001234', '1.5')
    """
    return f"{100 * value:.1f} %" if share else f"{value:.4g}"


def _label(arm: str, line: str) -> str:
    return f"{arm}, {line}" if line else arm


def _ends(found: Sequence[tuple[int, str, str, bool, Curve]], panel: Panel) -> str:
    ends = [(_label(arm, line), list(one.means.values())) for _, arm, line, _, one in found]
    return "; ".join(
        f"{label} from {_reading(values[0], panel.share)} to {_reading(values[-1], panel.share)}" for label, values in ends
    )


def _readings(found: Sequence[tuple[int, str, str, bool, Curve]], scale: _Scale, panel: Panel) -> str:
    steps = sorted({step for *_, one in found for step in one.means})
    lines = [
        {
            "label": _label(arm, line),
            "colour": i,
            "values": [_reading(one.means[step], panel.share) if step in one.means else None for step in steps],
            "y": [scale.y(one.means[step]) if step in one.means else None for step in steps],
        }
        for i, arm, line, _, one in found
    ]
    return json.dumps({"x": [scale.x(step) for step in steps], "steps": steps, "lines": lines}, separators=(",", ":"))
