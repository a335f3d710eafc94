"""A tuning on a GPU: it trains there, gives evaluations their share of the card while it is examined, and takes it back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from experiments.cold_start import command
from tests.experiments.tuning import tiny

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("kind", [{"weights": "float32"}, {"weights": "bfloat16"}, {"lora_rank": 4}], ids=str)
def test_a_tiny_model_learns_and_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: dict[str, Any]) -> None:
    monkeypatch.chdir(tmp_path)
    for make in (tiny.model, tiny.table, tiny.problems):
        make(tmp_path)
    flags = {"model": "tiny", "data": "conversations.jsonl", "validation": "problems.jsonl", "style": "short", "turns": 1}
    flags |= {"steps": 120, "batch": 16, "micro-batch": 16, "learning-rate": 1e-2, "max-new-tokens": 200, "validation-every": 60}
    flags |= {
        "validation-rollouts": 8,
        "out": "tuned",
        "jobs": 4,
        **{name.replace("_", "-"): value for name, value in kind.items()},
    }
    assert command.main([word for name, value in flags.items() for word in (f"--{name}", str(value))]) == 0
    (path,) = tmp_path.glob("runs/cold_start/tiny-*/metrics.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    examined = [row for row in rows if row["split"] == "validation"]
    assert [row["step"] for row in examined] == [0, 60, 120]
    trained = [row["loss"] for row in rows if row["split"] == "train"]
    assert len(trained) == 120 and trained[-1] < trained[0]
    if "lora_rank" not in kind:  # adapters of rank 4 do not teach a random model a text
        assert trained[-1] < 0.5 * trained[0]
        assert examined[-1]["correct_rate"] >= 0.5 > examined[0]["correct_rate"] == 0.0
        assert examined[-1]["timing"] == "measured"
    free, total = torch.cuda.mem_get_info()
    block = torch.empty(int(0.8 * free), dtype=torch.uint8, device="cuda")  # the share of the evaluations is ours again
    assert block.numel() > 0.5 * total
    assert (tmp_path / "tuned" / "model.safetensors").is_file()
