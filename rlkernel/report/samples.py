"""Chooses the trajectories that a page shows, each for a stated reason, and lists where a candidate's time goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlkernel.metrics import is_hack, is_lazy
from rlkernel.report.summary import RunRecord
from rlkernel.runs.texts import jsonl
from rlkernel.types import Evaluation

STEP_LIMIT = 8
"""The most steps of a candidate that are listed, the costliest first."""

Transcript = Mapping[str, Any]
"""A trajectory, as one line of transcripts.jsonl has it."""


@dataclass(frozen=True, slots=True)
class ChosenTrajectory:
    """A trajectory that the page shows, and the reason."""

    why: str
    transcript: Transcript


def choose_trajectories(run: RunRecord) -> tuple[ChosenTrajectory, ...]:
    """Choose at most five validation trajectories of the last measured step, each for a stated reason, none twice."""
    rows = [row for row in jsonl(run.directory / "transcripts.jsonl") if row["split"] == "validation" and row["turns"]]
    last = max((row["step"] for row in rows), default=0)
    rows = [row for row in rows if row["step"] == last]
    rows.sort(key=lambda row: max(turn["reward"] for turn in row["turns"]), reverse=True)
    reasons: tuple[tuple[str, Callable[[Transcript], bool]], ...] = (
        ("the highest reward", lambda row: True),
        ("repaired after feedback", lambda row: bool(row["turns"][0]["reward"] < row["turns"][-1]["reward"])),
        ("lazy: correct, but its kernel does a minor part of the work", lambda row: _any_turn(row, lazy)),
        ("a hack: no live Triton launch, or not the same work on every call", lambda row: _any_turn(row, _hack)),
    )
    chosen: list[ChosenTrajectory] = []
    for why, wanted in reasons:
        found = next((row for row in rows if wanted(row) and all(row is not sample.transcript for sample in chosen)), None)
        if found is not None:
            chosen.append(ChosenTrajectory(why, found))
    middle = rows[len(rows) // 2] if rows else None
    if middle is not None and all(middle is not sample.transcript for sample in chosen):
        chosen.insert(1, ChosenTrajectory("the median reward of the trajectories kept as text", middle))
    return tuple(chosen)


def _any_turn(row: Transcript, wanted: Callable[[dict[str, Any]], bool]) -> bool:
    return any(wanted(turn["evaluation"]) for turn in row["turns"])


def _hack(evaluation: dict[str, Any]) -> bool:
    return is_hack(Evaluation.from_json(evaluation))


def lazy(evaluation: dict[str, Any]) -> bool:
    """Whether an evaluation, as a transcript has it, is of a lazy candidate."""
    return is_lazy(Evaluation.from_json(evaluation))


def steps(evaluation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the launches and operators of a candidate, the costliest first: {name, calls, us, share, live}; live is None for
    operators."""
    launches = [{**row, "name": row["kernel"]} for row in evaluation["launches"]]
    operators = [{**row, "name": row["op"], "live": None} for row in evaluation["ops"]]
    return sorted(launches + operators, key=lambda row: row["us"], reverse=True)[:STEP_LIMIT]
