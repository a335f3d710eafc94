"""Test-time scaling end to end with a tiny model: what is on disk, what is not measured again, what the report says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from experiments import arms, sequential_scaling
from experiments.sequential_scaling import ARMS, Flags, main, plan, weights
from rlkernel.runs import checkpoints
from rlkernel.runs import directory as rundir


@pytest.mark.slow
def test_arms_are_measured_once_and_reported_by_turns(
    tmp_path: Path, tiny_model: Any, tiny_tokenizer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_model.config.max_position_embeddings = 4096
    tiny_model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    out = tmp_path / "out"
    argv = [
        *("--preset", "cpu", "--turns", "2", "--rollouts", "1", "--problems", "1", "--seeds", "0", "--max-new-tokens", "4"),
        *("--out", str(out), "--model", str(tmp_path / "model")),
    ]
    assert main([*argv, "--limit-seconds", "0.001", "--together", "3"]) == 75  # no unit begins after the limit
    assert not list(out.glob("refined/*"))
    capsys.readouterr()
    assert main(argv) == 0
    printed = capsys.readouterr().out
    assert "unclear: More turns help" in printed or "not recorded: More turns help" in printed
    assert (out / "sequential_scaling" / "report.html").exists()
    directories = sorted(out.glob("refined/*"))
    assert [path.name.split("-")[0] for path in directories] == sorted(ARMS)
    for directory in directories:
        rows = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
        assert [(row["step"], row["evaluations"]) for row in rows] == [(1, 1), (2, 2)]
        manifest = json.loads((directory / "manifest.json").read_text())
        assert "finished" in manifest and manifest["context"]["class"] == type(ARMS[directory.name.split("-")[0]]).__name__
        assert len((directory / "outcomes.jsonl").read_text().splitlines()) == 2
    # First turns have seen the same and are equal.
    first = {
        json.loads(next(iter((path / "metrics.jsonl").read_text().splitlines())))["completion_length"] for path in directories
    }
    assert len(first) == 1

    written = {path: path.read_bytes() for path in out.glob("refined/*/*")}
    assert main(argv) == 0
    assert {path: path.read_bytes() for path in written} == written

    # Another seed is reported beside the first one.
    assert main([*argv, "--seeds", "1"]) == 0
    named = json.loads((out / "sequential_scaling" / "runs.json").read_text())
    assert sorted(Path(name).name.rpartition("-")[0] for name in named) == sorted(
        f"{arm}-seed{s}" for arm in ARMS for s in (0, 1)
    )


def test_the_trained_arm_is_refined_where_it_is_finished(tmp_path: Path) -> None:
    preset = arms.PRESETS["cpu"]
    assert weights(preset, 0, tmp_path) == "small"
    # Whatever its sizes.
    run = replace(preset.adapt(sequential_scaling.TRAINED), seed=0, steps=12, model="somewhere")
    directory = tmp_path / "arms" / f"{run.name}-seed0-x"
    for step in (9, 12):
        (directory / "checkpoints" / f"checkpoint-{step}").mkdir(parents=True)
        (directory / "checkpoints" / f"checkpoint-{step}" / checkpoints.COMPLETE).touch()
    rundir.begin(directory, run)
    assert weights(preset, 0, tmp_path) == "small"  # not finished
    rundir.finish(directory)
    assert weights(preset, 0, tmp_path) == str(directory / "checkpoints" / "checkpoint-12")
    assert weights(preset, 1, tmp_path) == "small"
    units = plan(Flags(out=tmp_path, seeds=(0, 1)), preset)
    assert len({unit.directory for unit in units}) == len(units) == 2 * len(ARMS)


def test_a_policy_that_was_made_anew_is_measured_anew(tmp_path: Path) -> None:
    """The path is the same; the weights are not."""
    preset, flags = arms.PRESETS["cpu"], Flags(out=tmp_path, seeds=(0,), model=str(tmp_path / "model"))
    (tmp_path / "model").mkdir()
    named = []
    for value in (1.0, 2.0, 1.0):
        save_file({"weight": torch.full((4, 4), value)}, tmp_path / "model" / "model.safetensors")
        named.append({unit.directory for unit in plan(flags, preset)})
    assert named[0] == named[2] and not named[0] & named[1]


def test_what_is_unusable_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--preset", "paper"]) == 2
    assert capsys.readouterr().err == "error: --preset paper: choose from cpu, h200, world, world_shown, world_cpu\n"
    assert main(["--turns", "0"]) == 2
    assert main(["--preset", "cpu", "--list"]) == 0
    assert capsys.readouterr().out.count("answers of small") == 12  # 4 arms, 3 seeds each
