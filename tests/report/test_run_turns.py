"""The turns of runs, as the viewer gets them."""

from __future__ import annotations

import json
from pathlib import Path

from rlkernel.report.run_turns import run_names, turns_of
from rlkernel.report.summary import read_run
from rlkernel.runs.directory import OUTCOMES
from tests.report import many_turns


def test_runs_whose_directories_have_the_same_name_are_told_apart(tmp_path: Path) -> None:
    records = [read_run(many_turns.write_run(tmp_path / place / "grpo-seed0", "grpo", 0, 1)) for place in "abc"]
    assert run_names(records) == ["grpo-seed0", "grpo-seed0#2", "grpo-seed0#3"]


def test_all_trajectories_are_there_run_by_run(tmp_path: Path) -> None:
    runs = [read_run(many_turns.write_run(tmp_path / f"{arm}-seed0", arm, 0, count)) for arm, count in (("a", 3), ("b", 2))]
    content = turns_of(runs)
    assert [(source.name, source.arm, source.timing) for source in content.sources] == [
        ("a-seed0", "a", "measured"),
        ("b-seed0", "b", "measured"),
    ]
    assert [len(source.trajectories) for source in content.sources] == [3, 2]
    assert content.sources[0].trajectories[0]["problem"].startswith("level") and not content.benchmark


def test_shares_are_means_over_the_seeds_that_have_them(tmp_path: Path) -> None:
    shares = ({"p": (0.5, 0.25), "q": (1.0, 0.0)}, {"p": (1.0, 0.75)})
    runs = []
    for seed, own in enumerate(shares):
        directory = many_turns.write_run(tmp_path / f"a-seed{seed}", "a", seed, 0)
        early = {"p": {"fast_1": 0.0, "fast_1.2": 0.0}}
        late = {name: {"fast_1": one, "fast_1.2": more} for name, (one, more) in own.items()}
        lines = [{"split": "validation", "step": step, "problems": rows} for step, rows in ((10, early), (20, late))]
        (directory / OUTCOMES).write_text("".join(json.dumps(line) + "\n" for line in lines))
        runs.append(read_run(directory))
    # The last validation: p in both, (0.5 + 1) / 2 and (0.25 + 0.75) / 2; q in one.
    assert turns_of(runs).measured == {"a": {"p": [0.75, 0.5], "q": [1.0, 0.0]}}
