"""The oracle's table: for each validation problem the best speedup that a search has found, by card and way of timing.

`oracles.json` is written by `python -m experiments.world.oracle`. A problem that no search has seen has no oracle.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rlkernel.types import Oracle

TABLE = Path(__file__).parent / "oracles.json"


@cache
def load_oracles(path: Path = TABLE) -> Mapping[str, tuple[Oracle, ...]]:
    """The oracles of each problem by its name; empty without a table. Of cards with one way of timing the first counts."""
    found: dict[str, list[Oracle]] = {}
    for card in cards(path):
        for name, row in card["problems"].items():
            known = found.setdefault(name, [])
            if card["timing"] not in {oracle.timing for oracle in known}:
                known.append(Oracle(card["card"], card["timing"], row["speedup"]))
    return {name: tuple(oracles) for name, oracles in found.items()}


def cards(path: Path = TABLE) -> list[dict[str, Any]]:
    """The table itself: each card with its `timing` and its `problems`; empty without a table."""
    if not path.exists():
        return []
    table: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return table


def store(card: str, timing: str, problems: Mapping[str, Mapping[str, Any]], path: Path = TABLE) -> None:
    """Put the rows of a card into the table, each as problem -> speedup, points, schedule. Other problems' rows stay."""
    table = cards(path)
    own = next((row for row in table if (row["card"], row["timing"]) == (card, timing)), None)
    if own is None:
        own = {"card": card, "timing": timing, "problems": {}}
        table.append(own)
    own["problems"] = dict(sorted({**own["problems"], **problems}.items()))
    lines = []
    for row in table:
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in row["problems"].items())
        head = json.dumps({"card": row["card"], "timing": row["timing"]})[:-1]
        lines.append(f' {head}, "problems": {{\n{rows}\n }}}}')
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    load_oracles.cache_clear()
