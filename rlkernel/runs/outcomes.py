"""outcomes.jsonl of a run: what was measured per problem, one row per validation, so that arms can be paired problem by problem.

{"split": "validation", "step": 10, "problems": {"level2/x": {"reward": 0.7, ..., "coverages": [0.9, 0.2]}}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlkernel.metrics import FAST_THRESHOLDS, mean, rollout_metrics
from rlkernel.runs.directory import OUTCOMES
from rlkernel.types import Group, Split, Turn

KEYS = (
    *("reward", "reward_best", "reward_last", "correct_rate", "hacking_rate", "lazy_rate", "coverage"),
    *(f"fast_{p:g}{which}" for p in FAST_THRESHOLDS for which in ("", "_last", "_turn_1")),
)
"""The numbers of `rlkernel.metrics` that are kept for the trajectories of one problem."""
OPTIONAL_KEYS = ("oracle_fraction", "oracle_fraction_turn_1")
"""Those that are kept where the problem has an oracle."""
COVERAGES = "coverages"
"""The entry with the coverages of the correct turns, in order; the only one that is no number."""


def write_outcomes(directory: Path, split: Split, step: int, groups: Sequence[Group]) -> None:
    """Append one row. A row of the same split and step that is written later replaces it for readers."""
    problems = {group.problem.name: outcome(group) for group in groups}
    with (directory / OUTCOMES).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"split": split, "step": step, "problems": problems}) + "\n")


def outcome(group: Group) -> dict[str, Any]:
    """What was measured on one problem: a number for each of `KEYS`, and the coverages."""
    found = rollout_metrics([group])
    turns = [turn for trajectory in group.trajectories for turn in trajectory.turns]
    coverages = [round(turn.evaluation.coverage or 0.0, 4) for turn in turns if turn.evaluation.correct]
    kept = {key: found[key] for key in (*KEYS, *OPTIONAL_KEYS) if key in found}
    return {**kept, **apparent([group]), COVERAGES: coverages}


def apparent(groups: Sequence[Group]) -> dict[str, float]:
    """`apparent_fast_<p>`: share of trajectories with some turn whose outputs match at speedup >= p, whatever its status: what
    Fast@p would be without the hacking check."""
    trajectories = [trajectory for group in groups for trajectory in group.trajectories]
    return {
        f"apparent_fast_{p:g}": mean(any(_looks_fast(turn, p) for turn in trajectory.turns) for trajectory in trajectories)
        for p in FAST_THRESHOLDS
    }


def _looks_fast(turn: Turn, p: float) -> bool:
    facts = turn.evaluation
    return bool(facts.matches) and facts.speedup is not None and facts.speedup >= p


def read_outcomes(directory: Path) -> dict[int, Mapping[str, Mapping[str, Any]]]:
    """Validation outcomes by step, then by problem; empty for a run that has none. A line cut off by a kill is passed over."""
    path = directory / OUTCOMES
    found: dict[int, Mapping[str, Mapping[str, Any]]] = {}
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the run was killed while it wrote; it measures the step again when it goes on
        if row["split"] == "validation":
            found[row["step"]] = row["problems"]
    return found
