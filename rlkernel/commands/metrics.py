"""`rlkernel metrics`: the rows of a run's `metrics.jsonl` as a table that fits a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlkernel.commands.flags import nearest
from rlkernel.errors import UsageError
from rlkernel.runs.texts import jsonl

TOGETHER = (
    *("reward", "grad_norm", "entropy", "clip_fraction", "approx_kl", "age", "mismatch", "extreme_ratios"),
    *("effective_trajectories", "effective_tokens", "kept_turns", "kept_tokens", "frac_reward_zero_std", "cache_hit_rate"),
)
"""The numbers that docs/my_run_diverges.md reads together."""
WIDTH = 100
"""The columns of a terminal that a table keeps to."""


def print_metrics(directory: Path, names: Sequence[str], split: str) -> None:
    """Print these numbers of a run, one line per step, in several tables where one would be too wide.

    Raises UsageError for a directory that is not one of a run, and for a name that none of its rows has.
    """
    if not directory.is_dir():
        raise UsageError(f"{directory}: there is no such directory; give the directory of a run, such as runs/arms/grpo-seed0-*")
    rows = [row for row in jsonl(directory / "metrics.jsonl") if row["split"] == split]
    if not rows:
        raise UsageError(f"{directory / 'metrics.jsonl'}: no row of the split {split} yet")
    known = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        if name not in known:
            near = nearest(name, known, 3)
            raise UsageError(
                f"--names {name}: no row of {directory / 'metrics.jsonl'} has it{near}; docs/metrics.md has all names"
            )
    print("\n\n".join("\n".join(table(rows, part)) for part in parts(rows, names or TOGETHER)))


def parts(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[list[str]]:
    """The names in order, in as many tables as keep each within `WIDTH`.

    >>> rows = [{"step": 1, "reward": 0.5, "entropy": 0.1}]
    >>> parts(rows, ["reward", "entropy"]), len(parts(rows, ["reward"] * 20))
    ([['reward', 'entropy']], 2)
    """
    found: list[list[str]] = [[]]
    for name in names:
        if found[-1] and len(table(rows, [*found[-1], name])[0]) > WIDTH:
            found.append([])
        found[-1].append(name)
    return found


def table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """The lines of the table, whose names can be copied; `-` stands for what was not measured.

    >>> table([{"step": 1, "reward": 1.4142, "grad_norm_turn_1": None}], ["reward", "grad_norm_turn_1"])
    ['step reward grad_norm_turn_1', '   1   1.41                -']
    """
    lines = [["step", *names]]
    lines += [[str(row["step"]), *(_shown(row.get(name)) for name in names)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [" ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:.3g}" if isinstance(value, int | float) else str(value)
