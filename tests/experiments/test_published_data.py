"""Tables in the schemas of published data sets, through the commands of docs/data.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments import arms
from experiments.benchmark import command
from experiments.multi_turn_estimators import ARMS
from rlkernel.commands import cli, experiment
from tests.sources.published import drkernel, kernelbench

RELU = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.relu(x) * {factor}


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return [[], {{}}]
"""
KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def relu(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(y + i, tl.where(v > 0, v, 0.0) * {factor})


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu[(x.numel() // 64,)](x, y, BLOCK=64)
        return y
"""


def table(path: Path, count: int, first: int = 0) -> Path:
    rows = []
    for k in range(first, first + count):
        model = {"ground_truth": RELU.format(factor=k + 2), "style": "rule"}
        extra = {"entry_point": "Net", "level": "1", "module_name": f"Net{k}", "uuid": f"{k:08d}"}
        prompt = [{"role": "user", "content": f"Rewrite Net{k} as ModelNew."}]
        rows.append(drkernel(k, reward_model=model, extra_info=extra, prompt=prompt))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.slow
def test_a_run_on_a_table_like_drkernels_trains_two_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    train, held = table(tmp_path / "train.jsonl", 4), table(tmp_path / "held.jsonl", 1, first=9)
    flags = {"preset": "cpu", "steps": 2, "prompts-per-step": 2, "rollouts": 2, "validation-rollouts": 1, "turns": 2}
    flags |= {"max-new-tokens": 8, "seeds": 0, "jobs": 1, "problems": train, "validation": held, "style": "kernelgym"}
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    made = arms.experiment("multi_turn_estimators", "Two steps.", {"trloo": ARMS["trloo"]}, ())
    assert experiment.main(made, ["trloo", *words, "--out", str(tmp_path / "runs")]) == 0
    assert "train.jsonl: 4 problems" in capsys.readouterr().err
    (directory,) = (tmp_path / "runs" / "arms").iterdir()
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if row["split"] == "train"] == [1, 2]
    shown: list[dict[str, Any]] = [json.loads(line) for line in (directory / "transcripts.jsonl").read_text().splitlines()]
    assert {row["problem"] for row in shown if row["split"] == "validation"} == {"cuda_llm/Net9-00000009"}
    assert any(row["prompt"].startswith("Rewrite Net") for row in shown)


@pytest.mark.slow
def test_the_benchmark_takes_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [kernelbench(k, code=RELU.format(factor=k).replace("Net", "Model")) for k in (2, 3)]
    path = tmp_path / "kb.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{torn\n")
    solutions = tmp_path / "solutions" / "level2"
    solutions.mkdir(parents=True)
    (solutions / "2_Sum.py").write_text(KERNEL.format(factor=2))
    flags = [
        "--solutions",
        str(solutions.parent),
        "--problems",
        str(path),
        "--device",
        "cpu",
        "--jobs",
        "1",
        "--out",
        str(tmp_path),
    ]
    assert command.main(flags) == 0
    captured = capsys.readouterr()
    assert "row 3: not JSON" in captured.err
    (results,) = (tmp_path / "benchmark").glob("*/results.json")
    statuses = json.loads(results.read_text())
    assert "level2/2_Sum" in json.dumps(statuses)


@pytest.mark.slow
def test_a_problem_of_a_table_is_evaluated_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path / "t.jsonl", 2)
    (tmp_path / "candidate.py").write_text(KERNEL.format(factor=3))
    words = ["evaluate", "--problems", str(path), "--device", "cpu", "--json"]
    assert cli.main([*words, "cuda_llm/Net1-00000001", str(tmp_path / "candidate.py")]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "correct"  # 1 + 2 = 3 is the factor of row 1
    assert cli.main([*words, "Net1", str(tmp_path / "candidate.py")]) == 2
    assert "Net1: no problem of --problems has this name; names look like cuda_llm/Net0-00000000" in capsys.readouterr().err
