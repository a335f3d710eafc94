"""Turns as rows of a flat table, bounded in size: what is shown where the viewer is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rlkernel.runs.texts import TEXT_LIMITS, answer_parts, cut

LIMIT = 8_000_000
"""The most characters of all texts of a table."""
ROWS = 10_000
"""More than these W&B leaves out of a table, the last ones."""
TEXTS = ("plan", "code", "feedback", "detail")
COLUMNS = (
    *("at", "arm", "seed", "split", "step", "problem", "turn", "status", "speedup", "timing", "coverage", "reward"),
    *TEXTS,
)
"""`at` is the turn's name in the report's viewer."""


def turn_rows(run: str, arm: str, seed: int, trajectories: Mapping[int, Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
    """One row per turn, in one list per trajectory. run: its directory's name; trajectories: the transcripts, by line from 1."""
    found = []
    for line, row in trajectories.items():
        own = {"arm": arm, "seed": seed, "split": row["split"], "step": row["step"], "problem": row["problem"]}
        turns = enumerate(row["turns"], start=1)
        found.append([{"at": f"{run}:{line}.{k}", **own, "turn": k, **_told(turn)} for k, turn in turns])
    return found


def _told(turn: Mapping[str, Any]) -> dict[str, Any]:
    facts = turn["evaluation"]
    before, code, _ = answer_parts(turn["completion"], turn["code"])
    return {
        "status": str(facts["status"]),
        "speedup": _number(facts["speedup"]),
        "timing": facts["timing"] or "",
        "coverage": _number(facts["coverage"]),
        "reward": _number(turn["reward"]),
        "plan": before,
        "code": code or "",
        "feedback": turn["feedback"],
        "detail": facts["detail"],
    }


def _number(value: float | None) -> float | None:
    """A float that JSON can hold; None where there is none.

    >>> _number(1), _number(float("nan"))
    (1.0, None)
    """
    return None if value is None or not math.isfinite(value) else float(value)


def bounded(trajectories: Sequence[Sequence[dict[str, Any]]], limit: int = LIMIT, most: int = ROWS) -> list[dict[str, Any]]:
    """The rows of all trajectories, at most `most`, with at most `limit` characters of text: texts are cut as the viewer cuts
    them, and if that is not enough, every second trajectory is left out until it is."""
    kept = list(trajectories)
    for text_limit in TEXT_LIMITS:
        rows = [{**row, **{name: cut(row[name], text_limit) for name in TEXTS}} for rows in kept for row in rows]
        if _characters(rows) <= limit:
            break
    while (len(rows) > most or _characters(rows) > limit) and len(kept) > 1:
        kept = kept[::2]
        rows = [{**row, **{name: cut(row[name], text_limit) for name in TEXTS}} for rows in kept for row in rows]
    return rows


def _characters(rows: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(row[name]) for row in rows for name in TEXTS)
