"""Draws what runs say of all claims: one figure for those that hold, one for those that do not, one for those left open.

Each row is a claim with its difference and 95 % interval in margins of the claim, because claims have different units; their own
numbers stand beside it. A claim whose margin is 0 is drawn in half widths of its interval.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib import pyplot as plt

from rlkernel.report.claims import DecidedClaim, Verdict
from rlkernel.report.figure import COLOURS, STYLE

GROUPS: Mapping[Verdict, tuple[str, str]] = {
    Verdict.REPRODUCED: ("holds.png", COLOURS[2]),
    Verdict.NOT_REPRODUCED: ("fails.png", COLOURS[1]),
    Verdict.UNCLEAR: ("open.png", COLOURS[8]),
}
"""Verdict -> file of its figure, and colour."""
TICKS = (-100, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100)
"""The ticks of the scale, which is logarithmic beyond one margin."""
LABEL = 58
"""The longest line of a claim's text beside its row, in characters."""


def distinct(judged: Sequence[DecidedClaim]) -> list[DecidedClaim]:
    """The claims that speak of different things. Experiments share some: such a claim is taken from the experiment whose family
    asks most of it, and stands where it stands first."""
    strictest: dict[object, DecidedClaim] = {}
    for one in judged:
        known = strictest.setdefault(one.claim.subject, one)
        if (one.adjusted_p or 0.0) > (known.adjusted_p or 0.0):
            strictest[one.claim.subject] = one
    return list(strictest.values())


def strongest_first(judged: Sequence[DecidedClaim], verdict: Verdict) -> list[DecidedClaim]:
    """The different claims with a verdict, the smallest p first; those without an interval are left out."""
    found = [one for one in distinct(judged) if one.verdict is verdict and one.difference and one.difference.interval]
    return sorted(found, key=lambda one: 1.0 if one.adjusted_p is None else one.adjusted_p)


def draw_verdicts(judged: Sequence[DecidedClaim], out: Path) -> None:
    """Write the figures of `GROUPS` that have claims, each 1500 pixels wide, and remove those that have none any more."""
    for verdict, (name, colour) in GROUPS.items():
        rows = strongest_first(judged, verdict)
        if rows:
            _draw(rows, out / name, colour)
        else:
            (out / name).unlink(missing_ok=True)


def _draw(rows: Sequence[DecidedClaim], path: Path, colour: str) -> None:
    with plt.style.context(STYLE):
        figure, axis = plt.subplots(figsize=(10, 0.9 + 0.42 * len(rows)), layout="constrained")
        axis.axvline(0, color="#444444", linewidth=1)
        axis.axvspan(-1, 1, color="#f0f0f0", zorder=0)
        for at, one in enumerate(rows):
            assert one.difference is not None and one.difference.interval is not None
            interval = one.difference.interval
            unit = one.claim.margin or (interval.high - interval.low) / 2 or 1.0
            low, mean, high = (value / unit for value in (interval.low, one.difference.mean, interval.high))
            axis.plot([low, high], [at, at], color=colour, linewidth=2.2, solid_capstyle="butt")
            axis.plot(mean, at, "o", color=colour, markersize=6)
            axis.annotate(
                one.difference_text, (1.01, at), xycoords=("axes fraction", "data"), va="center", fontsize=9, family="monospace"
            )
        axis.set_yticks(range(len(rows)), [textwrap.fill(one.claim.told, LABEL) for one in rows], fontsize=9)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.set_xscale("symlog", linthresh=1)
        low, high = axis.get_xlim()
        axis.set_xticks([tick for tick in TICKS if low <= tick <= high], [str(t) for t in TICKS if low <= t <= high])
        axis.set_xlabel("difference in the direction of the claim, in its margins (grey: within one)")
        axis.grid(False, axis="y")
        figure.savefig(path, dpi=150)
        plt.close(figure)
