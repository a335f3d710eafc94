"""The tables of what `benchmarks.peers` found: verdicts, cost, spread. Every column or line names the system that measured it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.table import Table

from benchmarks.peer_pairs import PAIRS, REPEATED, SYSTEMS, Pair

Row = dict[str, Any]
INFLATED = 1.5
"""A cheat of the timer counts as believed above this multiple of its honest control's speedup, by the same system."""
FLAGS = {"excessive_speedup": ">10x"}
"""Short words for the flags that peers raise."""


def describe(row: Row) -> str:
    """A row's verdict in a few words."""
    if row.get("broken"):
        return "broken"
    if not row["accepted"]:
        return "no"
    return "yes" if row["speedup"] is None else f"yes {row['speedup']:.2f}x"


def fooled(row: Row, rows: Iterable[Row], pairs: Sequence[Pair] = PAIRS) -> bool | None:
    """Whether a system accepted what it should not have, or believed a cheated time. None where its honest control has not
    run."""
    if not row["accepted"] or row["deserves"] == "correct":
        return False
    if row["deserves"] == "refused":
        return True
    control = next(pair.control for pair in pairs if pair.name == row["pair"])
    honest = [other["speedup"] for other in rows if (other["system"], other["pair"]) == (row["system"], control)]
    honest = [speedup for speedup in honest if speedup is not None]
    if not honest or row["speedup"] is None:
        return None
    return bool(row["speedup"] > INFLATED * statistics.median(honest))


def quantile(values: Sequence[float], q: float) -> float:
    """The quantile q, linear between the sorted values.

    >>> quantile([1.0, 3.0, 2.0], 0.75)
    2.5
    """
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = int(place)
    return ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (place - low)


def report(rows: Sequence[Row], width: int = 100) -> Iterator[Any]:
    """Make three tables: verdicts, cost and spread."""
    first = {(row["system"], row["pair"]): row for row in rows if row["repeat"] == 0}
    notes = "* " + "; ".join(f"{pair.name}: {pair.note}" for pair in PAIRS if pair.note)
    verdicts = Table(title="Accepted, and the speedup believed", caption=notes, caption_justify="left", **_style(width))
    costs = Table(title="Seconds: wall, and GPU slot", **_style(width))
    for column in ("pair", "deserves", *SYSTEMS):
        verdicts.add_column(column, no_wrap=True)
    costs.add_column("pair", no_wrap=True)
    for system in SYSTEMS:
        costs.add_column(f"{system} wall", justify="right", no_wrap=True)
        costs.add_column("slot", justify="right", no_wrap=True)
    for pair in PAIRS:
        present = [first.get((system, pair.name)) for system in SYSTEMS]
        if not any(present):
            continue
        cells = [_verdict(row, rows) for row in present]
        verdicts.add_row(pair.name, pair.deserves + ("*" if pair.note else ""), *cells)
        times = [_seconds(row, name) for row in present for name in ("wall_s", "slot_s")]
        costs.add_row(pair.name, *times)
    yield verdicts
    yield costs
    yield _summary(rows, width)
    yield _spread(rows, width)


def _style(width: int) -> dict[str, Any]:
    return {"box": None, "width": width, "title_justify": "left", "pad_edge": False}


def _verdict(row: Row | None, rows: Sequence[Row]) -> str:
    if row is None:
        return "-"
    if row.get("broken"):
        return "broken"
    wrong = fooled(row, rows) or (row["deserves"] == "correct" and not row["accepted"])
    return (
        describe(row)
        + (" WRONG" if wrong else "")
        + (f" {', '.join(FLAGS.get(flag, flag) for flag in row['flags'])}" if row.get("flags") else "")
    )


def _seconds(row: Row | None, name: str) -> str:
    return "-" if row is None or row.get(name) is None else f"{row[name]:.3f}" if row[name] < 1 else f"{row[name]:.1f}"


def _summary(rows: Sequence[Row], width: int) -> Any:
    table = Table(title="In all", **_style(width))
    for column in ("system", "honest accepted", "hacks believed", "median wall s", "median slot s", "slot s if accepted"):
        table.add_column(column, justify="left" if column == "system" else "right")
    for system in SYSTEMS:
        mine = [row for row in rows if row["system"] == system and not row.get("broken")]
        if not mine:
            continue
        singles = [row for row in mine if row["repeat"] == 0]
        honest = [row["accepted"] for row in singles if row["deserves"] == "correct"]
        hacks = [fooled(row, rows) for row in singles if row["deserves"] != "correct"]
        known = [hack for hack in hacks if hack is not None]
        accepted = [row["slot_s"] for row in mine if row["accepted"]]
        table.add_row(
            system,
            f"{sum(honest)} of {len(honest)}",
            f"{sum(known)} of {len(known)}",
            f"{statistics.median(row['wall_s'] for row in mine):.2f}",
            f"{statistics.median(row['slot_s'] for row in mine):.3f}",
            f"{statistics.median(accepted):.3f}" if accepted else "-",
        )
    return table


def _spread(rows: Sequence[Row], width: int) -> Any:
    table = Table(title="The same candidate again: its speedups", **_style(width))
    for column in ("pair", "system", "evaluations", "lowest", "highest", "highest/lowest", "p95/p5"):
        table.add_column(column, justify="left" if column in ("pair", "system") else "right", no_wrap=True)
    for name in REPEATED:
        for system in SYSTEMS:
            values = [row["speedup"] for row in rows if row["system"] == system and row["pair"] == name and row["speedup"]]
            if len(values) >= 2:
                ratios = max(values) / min(values), quantile(values, 0.95) / quantile(values, 0.05)
                numbers = [f"{value:.3f}" for value in (min(values), max(values), *ratios)]
                table.add_row(name, system, str(len(values)), *numbers)
    return table
