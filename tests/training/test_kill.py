"""A run that is killed at ten moments, and resumed each time, ends as if it had not been."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests import forked


def rows(directory: Path, name: str) -> list[dict[str, Any]]:
    """Without what the clock and the machine decide."""
    found = [json.loads(line) for line in (directory / name).read_text().splitlines()]
    return [
        {k: v for k, v in row.items() if not k.startswith(("seconds_", "memory_")) and not k.endswith("_per_second")}
        for row in found
    ]


@pytest.mark.parametrize(
    "staleness, weights, refresh_tokens", [(0, "float32", 0), (2, "float32", 0), (0, "bfloat16", 0), (2, "float32", 5)]
)
def test_ten_kills_change_nothing(
    staleness: int, weights: str, refresh_tokens: int, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    tiny_model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    script = Path("tests/training/killed_runs.py")
    done = forked.run([script, tmp_path / "model", tmp_path, str(staleness), weights, str(refresh_tokens)])
    assert done.returncode == 0, done.stderr
    first, *killed, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert (first["status"], last["status"]) == (0, 0), done.stderr
    assert [attempt["signal"] for attempt in killed] == [signal.SIGKILL] * 10, killed
    kinds = {attempt["kill"][0].partition(":")[0] for attempt in killed}
    assert any("between two updates" in attempt["kill"][0] for attempt in killed)
    assert kinds == {"rollout", "training", "log", "checkpoint", "start"}
    resumed_from = {step for attempt in killed for step in attempt["steps"]}
    assert len(resumed_from) >= 4, killed
    whole, broken = tmp_path / "whole", tmp_path / "killed"
    assert rows(broken, "metrics.jsonl") == rows(whole, "metrics.jsonl")
    assert rows(broken, "transcripts.jsonl") == rows(whole, "transcripts.jsonl")
    assert rows(broken, "outcomes.jsonl") == rows(whole, "outcomes.jsonl")
    for name in ("model.safetensors", "optimizer.pt"):
        found = [(directory / "checkpoints" / "checkpoint-12" / name).read_bytes() for directory in (whole, broken)]
        assert found[0] == found[1], name
    trained = [row for row in rows(whole, "metrics.jsonl") if row["split"] == "train"]
    # The first batch is always fresh, the second one step old at most.
    ages = [row["age"] for row in trained]
    if refresh_tokens:
        # Of 16 tokens at most, 5 come from weights that are two steps old.
        assert ages[:2] == [0, 1] and all(1 + 5 / 16 <= age < 2 for age in ages[2:])
    else:
        assert ages == [min(step, staleness) for step in range(12)]
    # Adam at 1e-2 moves this model visibly in one update.
    assert trained[0]["mismatch"] < (1e-4 if weights == "float32" else 2e-2)
    assert weights == "bfloat16" or all((row["mismatch"] > 1e-2) is bool(staleness) for row in trained[2:])
    # The second of a batch's two updates clips, where it has advantages.
    assert sum(row["clip_fraction"] > 0 for row in trained) >= 6
