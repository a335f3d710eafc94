"""Several processes train what one trains, whoever is killed when; and the documented command starts them."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests import forked

ROOT = Path(__file__).parents[2]
VARIES = ("seconds_", "memory_", "sampled_tokens_per", "evaluations_per", "trained_tokens_per")
"""What the clock and the machine decide."""


def rows(directory: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if not key.startswith(VARIES)} for row in found]


def passes(directory: Path, rank: int) -> list[tuple[int, int, int]]:
    """Step, rows and trained tokens of the training passes of one process."""
    text = directory.with_name(f"{directory.name}.passes{rank}").read_text()
    return [tuple(json.loads(line)) for line in text.splitlines()]


def said(directory: Path, rank: int) -> str:
    return directory.with_name(f"{directory.name}.said{rank}").read_text()


def check_equal(several: Path, one: Path, checkpoint: str) -> None:
    """But for the order of sums."""
    assert len(rows(several)) == len(rows(one))
    for ours, theirs in zip(rows(several), rows(one), strict=True):
        assert ours.keys() == theirs.keys()
        for name, value in theirs.items():
            assert ours[name] == (pytest.approx(value, rel=1e-5, abs=1e-5) if isinstance(value, float) else value), name
    weights = [load_file(directory / "checkpoints" / checkpoint / "model.safetensors") for directory in (several, one)]
    # An update moves them by the learning rate, 1e-4.
    torch.testing.assert_close(*weights, rtol=0, atol=2e-6)


def test_several_processes_train_what_one_trains(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    tiny_model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    done = forked.run([Path("tests/training/several_processes.py"), tmp_path / "model", tmp_path])
    assert done.returncode == 0, done.stderr
    attempts = [json.loads(line) for line in done.stdout.splitlines()]
    statuses = [(attempt["attempt"], attempt["statuses"]) for attempt in attempts]
    assert statuses == [
        ("whole", [0]),
        ("whole", [0, 0]),
        ("updates", [0]),
        ("updates", [0, 0]),
        ("few", [0]),
        ("few", [0, 0, 0]),
        ("the first is killed", [-signal.SIGKILL, 1]),
        ("another is killed in a checkpoint", [2, -signal.SIGKILL]),
        ("the first is interrupted", [130, 1]),
        ("goes on", [0, 0]),
        ("limit", [75, 0]),
        ("help", [0, 0]),
        ("help, and another is killed at the end", [2, -signal.SIGKILL]),
    ], done.stderr
    # Nobody waits for who is gone: whoever does is killed in the end, with -SIGKILL as its status.

    whole = tmp_path / "whole2"
    check_equal(whole, tmp_path / "whole1", "checkpoint-2")
    trained = [row for row in rows(whole) if row["split"] == "train"]
    # There was something to compare: rejections by the mismatch, stale batches, gradients.
    assert all(0.2 < row["kept_tokens"] < 1 and row["grad_norm"] > 0.1 for row in trained)
    assert [row["age"] for row in trained] == [0, 1]
    assert trained[-1]["mismatch"] > 1e-3
    for step in range(2):
        one, first, other = (
            [(rows, tokens) for at, rows, tokens in passes(directory, rank) if at == step]
            for directory, rank in ((tmp_path / "whole1", 0), (whole, 0), (whole, 1))
        )
        # Every row in one process, and both have work.
        for i in range(2):
            assert sum(each[i] for each in first + other) == sum(each[i] for each in one)
        assert first and other
    # Different numbers of passes in some step, which would hang if gradients were joined in each.
    counts = [[sum(at == step for at, _, _ in passes(whole, rank)) for step in range(2)] for rank in range(2)]
    assert counts[0] != counts[1]

    # Three updates, twice each, with every term of the loss: the same denominators, whoever has which rows.
    check_equal(tmp_path / "updates2", tmp_path / "updates1", "checkpoint-1")
    (updated,) = (row for row in rows(tmp_path / "updates2") if row["split"] == "train")
    (alone,) = (row for row in rows(tmp_path / "updates1") if row["split"] == "train")
    # Who has a row in one epoch may not have it in the next; only the last one counts.
    assert updated["approx_kl"] == pytest.approx(alone["approx_kl"], rel=1e-3) and updated["approx_kl"] > 1e-6
    assert updated["largest_ratio"] == pytest.approx(alone["largest_ratio"], rel=1e-5) and updated["largest_ratio"] > 1.001
    assert updated["clip_fraction"] > 0 and updated["kl_reference"] > 0 and updated["grad_norm_turn_2"] > 0

    # Two rows for three processes: one has nothing to train, and takes part.
    check_equal(tmp_path / "few3", tmp_path / "few1", "checkpoint-1")
    assert [passes(tmp_path / "few3", rank)[0][1:] for rank in range(3)] == [(1, 24), (1, 24), (1, 0)]

    # At its limit, the run has taken one step in all processes, and none of them waits for another.
    assert rows(tmp_path / "limit") == rows(whole)[:2]
    assert (tmp_path / "limit" / "checkpoints" / "checkpoint-1" / "complete").exists()

    # Ended three times, it ends as if it had not been.
    killed = tmp_path / "killed"
    assert rows(killed) == rows(whole)
    for name in ("model.safetensors", "optimizer.pt"):
        found = [(directory / "checkpoints" / "checkpoint-2" / name).read_bytes() for directory in (whole, killed)]
        assert found[0] == found[1], name
    errors = [line for line in said(killed, 0).splitlines() if not line.startswith("several seed 0")]
    ended = "error: another process of this run ended, see above: the same command goes on from the last checkpoint"
    assert len(errors) == 2 and errors[1] == "interrupted: told"
    # In one line, and with what torch has said.
    assert re.fullmatch(rf"{ended} \(\w+Error: .*gloo.*\)", errors[0])
    assert said(killed, 0).count("resuming after step 1 of 2") == 3
    # The others are quiet, also when they end because the first has.
    for directory, ranks in (("whole2", 2), ("few3", 3), ("killed", 2), ("limit", 2), ("help", 2), ("gone", 2)):
        assert [said(tmp_path / directory, rank) for rank in range(1, ranks)] == [""] * (ranks - 1)
    for directory in ("help", "gone"):
        assert said(tmp_path / directory, 0).startswith("usage: python -m experiments.several")
    assert "error" not in said(tmp_path / "help", 0)
    assert re.fullmatch(rf"{ended} \(.*\)", said(tmp_path / "gone", 0).splitlines()[-1])


def test_the_documented_command_trains_in_two_processes(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    tiny_model.config.max_position_embeddings = 4096  # the tokenizer has hardly any merges, so prompts are long
    tiny_model.save_pretrained(tmp_path / "tiny")
    tiny_tokenizer.save_pretrained(tmp_path / "tiny")
    page = (ROOT / "docs" / "larger.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^accelerate (launch --multi_gpu .*--preset cpu)", page, re.MULTILINE)
    text = text.replace("multi_turn_estimators", "multi_turn_estimators trloo")
    small = "--steps 1 --prompts-per-step 1 --rollouts 2 --validation-rollouts 1 --turns 1 --max-new-tokens 4 --seeds 0 --jobs 1 "
    small += "--model tiny"
    environment = {**os.environ, "WANDB_MODE": "disabled", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    launch = ["-m", "accelerate.commands.accelerate_cli", *shlex.split(f"{text} {small}")]
    done = forked.run(launch, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("report: runs/multi_turn_estimators/report.html") == 1
    assert done.stderr.count("trloo seed 0: starting") == 1
    assert "Warning" not in done.stderr
    (checkpoint,) = tmp_path.glob("runs/arms/trloo-seed0-*/checkpoints/checkpoint-1")
    assert {path.name for path in checkpoint.glob("rng_state*")} == {"rng_state_0.pth", "rng_state_1.pth"}
