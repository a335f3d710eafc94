"""Card-minutes: runs side by side on one card count once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.results.cost import cost_lines, occupied
from rlkernel.report.summary import RunRecord


def run(begin: str, end: str, card: str | None, seconds: float = 60.0, starts: int = 1) -> RunRecord:
    machine: dict[str, Any] = {"gpus": ["NVIDIA H200"], **({"cards": [card]} if card else {})}
    first = f"2026-11-27T{begin}+0000"
    manifest = {"machine": machine, "starts": [{"at": first}] * starts, "finished": f"2026-11-27T{end}+0000"}
    row = {"seconds_wall": seconds}
    return RunRecord(Path("run"), "grpo", 0, "measured", manifest, (), (row,))


def test_runs_side_by_side_on_one_card_count_once() -> None:
    beside = [run("10:00:00", "10:10:00", "a"), run("10:05:00", "10:12:00", "a")]
    assert occupied(beside) == 720  # 10:00 to 10:12
    assert occupied([*beside, run("10:00:00", "10:10:00", "b")]) == 720 + 600
    assert occupied([*beside, run("10:20:00", "10:21:00", "a")]) == 720 + 60
    assert cost_lines(beside)[0] == "**Cost**: 12 card-minutes, 6.0 per run, shared arms included."


@pytest.mark.parametrize("other", [run("10:00:00", "10:10:00", None), run("10:00:00", "10:10:00", "a", starts=2)])
def test_who_does_not_say_where_or_was_resumed_counts_alone(other: RunRecord) -> None:
    assert occupied([run("10:00:00", "10:10:00", "a"), other]) == 600 + 60


def test_runs_that_recorded_no_time_have_no_cost() -> None:
    assert cost_lines([run("10:00:00", "10:10:00", None, seconds=0.0)]) == []


def test_runs_without_seconds_of_their_steps_cost_what_they_held_of_a_card() -> None:
    """Units of test-time scaling: two side by side for 12 minutes, as above."""
    beside = [run("10:00:00", "10:10:00", "a", seconds=0.0), run("10:05:00", "10:12:00", "a", seconds=0.0)]
    assert cost_lines(beside)[0] == "**Cost**: 12 card-minutes, 6.0 per run, shared arms included."
