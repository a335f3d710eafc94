"""`rlkernel metrics`: the numbers of a run as a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlkernel.commands.cli import main
from rlkernel.commands.metrics import TOGETHER

ROWS = (
    {"step": 0, "split": "validation", "reward": 9.0},
    {
        "step": 1,
        "split": "train",
        "reward": 1.4142,
        "grad_norm": 7.7,
        "kept_turns": 1.0,
        "approx_kl": None,
        "frac_reward_zero_std": 1.0,
    },
    {
        "step": 12,
        "split": "train",
        "reward": 0.75,
        "grad_norm": 1234.0,
        "kept_turns": 0.5,
        "approx_kl": 0.0801,
        "frac_reward_zero_std": 0.125,
        "cache_hit_rate": 0.25,
    },
)


@pytest.fixture
def run(tmp_path: Path) -> str:
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return str(tmp_path)


def test_the_rows_of_a_run_fit_a_terminal(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", run]) == 0
    captured = capsys.readouterr()
    parts = [[line.split() for line in part.splitlines()] for part in captured.out.split("\n\n")]
    assert [name for heads, *_ in parts for name in heads if name != "step"] == list(TOGETHER), "they can be copied for --names"
    assert parts[0][1:] == [["1", "1.41", "7.7", *"------"], ["12", "0.75", "1.23e+03", "-", "-", "0.0801", *"---"]]
    assert parts[-1] == [["step", "cache_hit_rate"], ["1", "-"], ["12", "0.25"]]
    assert max(map(len, captured.out.splitlines())) <= 100
    assert captured.err == "", "it needs no torch"
    assert main(["metrics", run, "--names", "reward", "grad_norm"]) == 0
    assert capsys.readouterr().out == "step reward grad_norm\n   1   1.41       7.7\n  12   0.75  1.23e+03\n"
    assert main(["metrics", run, "--names", "reward", "--split", "validation"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["0", "9"]


def test_what_cannot_be_printed_is_one_line(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    for args, line in (
        (["metrics"], "expected the directory of one run, got 0"),
        (["metrics", run, "/other"], "expected the directory of one run, got 2"),
        (
            ["metrics", run, "--names", "rewrad"],
            f"--names rewrad: no row of {run}/metrics.jsonl has it; perhaps you meant reward; docs/metrics.md has all names",
        ),
        (
            ["metrics", run, "--names", "reward", "kept_turn"],
            f"--names kept_turn: no row of {run}/metrics.jsonl has it; perhaps you meant kept_turns; docs/metrics.md has all "
            "names",
        ),
        (
            ["metrics", run, "--names", "entropy"],
            f"--names entropy: no row of {run}/metrics.jsonl has it; docs/metrics.md has all names",
        ),
        (
            ["metrics", "/nowhere"],
            "/nowhere: there is no such directory; give the directory of a run, such as runs/arms/grpo-seed0-*",
        ),
    ):
        assert main(args) == 2
        assert capsys.readouterr().err == f"error: {line}\n"
