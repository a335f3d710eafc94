"""What the runs of a page cost: the time for which they held their cards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from rlkernel.report.summary import RunRecord


def cost_lines(runs: Sequence[RunRecord]) -> list[str]:
    """The line that says how long the runs took, where they recorded it."""
    if not all(_span(run) or _seconds(run) for run in runs):
        return []
    seconds = occupied(runs)
    what = "card-minutes" if all(run.manifest["machine"]["gpus"] for run in runs) else "minutes of a machine"
    return [f"**Cost**: {seconds / 60:.0f} {what}, {seconds / 60 / len(runs):.1f} per run, shared arms included.", ""]


def occupied(runs: Sequence[RunRecord]) -> float:
    """The seconds that cards were held by any of the runs: runs side by side on one card count once. A run that was resumed, or
    that does not say on which card it was, counts as if it had been alone."""
    spans: dict[str, list[tuple[float, float]]] = {}
    alone = 0.0
    for run in runs:
        if span := _span(run):
            spans.setdefault(run.manifest["machine"]["cards"][0], []).append(span)
        else:
            alone += _seconds(run)
    return alone + sum(_union(own) for own in spans.values())


def _span(run: RunRecord) -> tuple[float, float] | None:
    """When a run that was never resumed held the card that it names, in seconds since 1970; None for any other."""
    starts = run.manifest.get("starts", ())
    if not run.manifest["machine"].get("cards") or len(starts) != 1:
        return None
    begin, end = (datetime.fromisoformat(str(at)).timestamp() for at in (starts[0]["at"], run.manifest["finished"]))
    return begin, end


def _union(spans: Sequence[tuple[float, float]]) -> float:
    """The length of what the spans cover.

    >>> _union([(0.0, 10.0), (5.0, 12.0), (20.0, 21.0)])
    13.0
    """
    covered, until = 0.0, -math.inf
    for begin, end in sorted(spans):
        covered += max(end - max(begin, until), 0.0)
        until = max(until, end)
    return covered


def _seconds(run: RunRecord) -> float:
    """The seconds of a run's steps and validations."""
    return sum(float(row.get("seconds_wall", 0.0)) for row in (*run.training, *run.validation))
