"""What a policy does, turn by turn: shares of the kinds of answers, and which kind follows which."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, zip_longest
from pathlib import Path

from rlkernel.metrics import rollout_metrics, timing
from rlkernel.types import Group, Status, Turn

FAST = 1.2
LAZY = 1.1
"""The speedup up to which a correct answer is lazy: its kernel does a minor part of the work, or is launched badly."""
KINDS = ("fast", "medium", "lazy", "no_kernel", "incorrect", "broken")


def kind(turn: Turn) -> str:
    """The kind of a turn, one of KINDS. `medium` lies between LAZY and FAST; `broken` is everything that gave no outputs to
    compare."""
    if turn.evaluation.correct:
        speedup = turn.evaluation.speedup or 0.0
        return "fast" if speedup >= FAST else "medium" if speedup > LAZY else "lazy"
    named = {Status.NO_KERNEL: "no_kernel", Status.INCORRECT: "incorrect"}
    return named.get(turn.evaluation.status, "broken")


def shares(groups: Sequence[Group]) -> list[dict[str, float]]:
    """For each turn, the share of each kind (they sum to 1) and the mean `reward`, over the trajectories that got there."""
    levels = zip_longest(*(t.turns for group in groups for t in group.trajectories))
    turns = [[turn for turn in level if turn is not None] for level in levels]
    table = []
    for level in turns:
        counts = Counter(kind(turn) for turn in level)
        row = {name: counts[name] / len(level) for name in KINDS}
        table.append({**row, "reward": sum(turn.reward for turn in level) / len(level)})
    return table


def repairs(groups: Sequence[Group]) -> dict[str, dict[str, float]]:
    """`repairs(...)[before][after]`: the share of answers of kind `after` among those that follow one of kind `before`."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in KINDS}
    for group in groups:
        for trajectory in group.trajectories:
            for before, after in pairwise(trajectory.turns):
                counts[kind(before)][kind(after)] += 1
    return {name: {other: row[other] / max(1, row.total()) for other in KINDS} for name, row in counts.items()}


def write_behaviour(groups: Sequence[Group], directory: Path) -> None:
    """Print both tables, and write them with the metrics as behaviour.json."""
    print(render(groups))
    facts = {"timing": timing(groups), "turns": shares(groups), "next": repairs(groups), "metrics": rollout_metrics(groups)}
    (directory / "behaviour.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def render(groups: Sequence[Group]) -> str:
    """Both tables as text."""
    head = f"{'':12}" + "".join(f"{name:>11}" for name in KINDS)
    lines = [head + f"{'reward':>11}"]
    for number, row in enumerate(shares(groups), start=1):
        cells = "".join(f"{row[name]:>11.0%}" for name in KINDS)
        lines.append(f"{f'turn {number}':12}{cells}{row['reward']:>11.2f}")
    lines.append(head + "   (next answer)")
    lines += [f"{name:12}" + "".join(f"{row[other]:>11.0%}" for other in KINDS) for name, row in repairs(groups).items()]
    return "\n".join(lines)
