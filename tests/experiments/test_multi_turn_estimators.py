"""The arms of the experiment differ in what they claim to differ in, and its command runs, resumes and reports."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from algorithms import TABLES
from experiments.multi_turn_estimators import ARMS, BASE, pretrained
from rlkernel import experiment
from rlkernel.config import fingerprint, to_json

ROOT = Path(__file__).parents[2]


def test_arms_are_named_by_their_keys() -> None:
    assert {key: run.name for key, run in ARMS.items()} == {"grpo": "grpo", "trloo": "trloo"}


def test_arms_differ_in_the_advantage_alone() -> None:
    grpo, trloo = (to_json(run) for run in ARMS.values())
    assert {key for key in grpo if grpo[key] != trloo[key]} == {"name", "advantage"}
    assert (grpo["advantage"]["class"], trloo["advantage"]["class"]) == ("GRPO", "TRLOO")
    assert len({fingerprint(run) for run in ARMS.values()}) == 2


def test_the_small_policy_trains_on_chains_and_other_models_on_the_whole_suite() -> None:
    assert {problem.split for problem in BASE.problems} == {"train", "validation"}
    assert len(pretrained(BASE).problems) > 2 * len(BASE.problems)
    assert pretrained(BASE).advantage == BASE.advantage


def test_command_trains_both_arms_reports_and_does_not_train_again(
    tmp_path: Path, tiny_model: Any, tiny_tokenizer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_model.config.max_position_embeddings = 4096  # the tokenizer has hardly any merges, so prompts are long
    tiny_model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    few = tuple(next(problem for problem in BASE.problems if problem.split == split) for split in ("train", "validation"))
    arms = {name: replace(run, problems=few) for name, run in ARMS.items()}
    sizes = "--steps 1 --turns 1 --prompts-per-step 1 --rollouts 2 --validation-rollouts 1 --max-new-tokens 4 --seeds 0 --jobs 1"
    argv = ["--out", str(tmp_path / "out"), "--model", str(tmp_path / "model"), *sizes.split()]

    assert experiment.main("estimators", "The claim.", arms, argv, pretrained=lambda run: run) == 0
    assert "trloo - grpo" in capsys.readouterr().out
    assert (tmp_path / "out" / "report.html").exists()
    manifests = sorted((tmp_path / "out").glob("*/manifest.json"))
    assert [json.loads(path.read_text())["arm"] for path in manifests] == ["grpo", "trloo"]

    written = {path: path.read_bytes() for path in (tmp_path / "out").glob("*-seed0-*/*.json*")}
    assert experiment.main("estimators", "The claim.", arms, argv, pretrained=lambda run: run) == 0
    assert {path: path.read_bytes() for path in written} == written


def test_module_is_a_command() -> None:
    command = [sys.executable, "-m", "experiments.multi_turn_estimators", "--list"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert listed.returncode == 0, listed.stderr
    arms, methods = listed.stdout.split("\n\n")
    assert [line.split()[0] for line in arms.splitlines()] == ["arm", "grpo", "trloo"]
    shown = {tuple(line.split()[:2]) for line in methods.splitlines() if line[0] != " "}
    assert shown - {("method", "name")} == {(kind, name) for kind, classes in TABLES.items() for name in classes}
