"""A policy from nothing: training that stops at a time goes on, and the smallest recipe goes all the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import torch

from envs.teacher.corpus import Conversation, Exchange
from experiments.cold_start import command, miniature
from experiments.cold_start.lesson import Lesson
from experiments.cold_start.recipes import WORLD_RECIPES, Taught, rehearsal
from experiments.tuning.examination import Examination
from rlkernel.errors import GOES_ON
from rlkernel.policy.small import build_model, build_tokenizer, load_small
from rlkernel.types import Evaluation, Group, Problem, Status

ROOT = Path(__file__).parents[3]
TINY = replace(rehearsal(WORLD_RECIPES["cpu"][0]), steps=3)


@pytest.mark.slow
def test_training_that_was_stopped_goes_on_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = build_tokenizer(["the corpus of a policy", "a policy"], 300, 64)
    tokens = list(range(20, 32))
    rows = [{"input_ids": tokens[: n + 4], "labels": tokens[: n + 4]} for n in range(8)]

    def trained(place: str, *until: float, micro_batch: int | None = None) -> tuple[list[bool], torch.Tensor]:
        monkeypatch.setattr(miniature, "RUNS", tmp_path / place)
        done = []
        for limit in until:
            model = build_model(tokenizer, width=16, layers=1, heads=2, feed_forward=16)
            done.append(miniature.train(model, Lesson(tokenizer, rows, 0), TINY, limit, micro_batch))
        return done, model.get_input_embeddings().weight.detach()

    far = float("inf")
    # A limit in the past lets one step through; the last call finds all three done.
    parts, weights = trained("parts", 0.0, 0.0, far, far)
    assert parts == [False, False, True, True]
    _, first = trained("none", 0.0)
    assert torch.equal(weights, trained("whole", far)[1]) and not torch.equal(weights, first)
    # Two passes of one conversation are a step of two, whose rows differ in length.
    _, split = trained("split", far, micro_batch=1)
    assert torch.allclose(weights, split, rtol=0, atol=0.01 * float((weights - first).abs().max()))


def test_conversations_are_taught_by_what_their_first_draft_is_worth() -> None:
    """Of 400 each: all that are fast or hack, about half of the slow ones (sd 10) and 0.6 of the wrong ones (sd 9.8)."""
    verdicts = {
        "fast": Evaluation(Status.CORRECT, "", speedup=1.3),
        "even": Evaluation(Status.CORRECT, "", speedup=1.0),
        "slow": Evaluation(Status.CORRECT, "", speedup=0.99),
        "hack": Evaluation(Status.NO_KERNEL, ""),
        "wrong": Evaluation(Status.INCORRECT, ""),
    }
    problem = Problem("mine/relu", 1, "train", "import torch\n")
    corpus = [Conversation(problem, name, (Exchange("", v, ""),)) for name, v in verdicts.items() for _ in range(400)]
    chosen = miniature.taught(corpus, Taught(slow=0.5, wrong=0.6), 0)
    counts = Counter(conversation.prompt for conversation in chosen)
    assert (counts["fast"], counts["even"], counts["hack"]) == (400, 400, 400)
    assert abs(counts["slow"] - 200) < 50 and abs(counts["wrong"] - 240) < 50
    assert chosen == miniature.taught(corpus, Taught(slow=0.5, wrong=0.6), 0) != miniature.taught(corpus, Taught(0.5, 0.6), 1)
    assert miniature.taught(corpus, Taught(), 0) == tuple(corpus)


def test_a_policy_is_examined_where_its_corpus_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Examination] = []

    async def examine(model: Any, tokenizer: Any, examination: Examination, cache: Path) -> tuple[Group, ...]:
        asked.append(examination)
        return ()

    monkeypatch.setattr(miniature, "examine", examine)
    for recipe, _ in WORLD_RECIPES.values():
        anyio.run(miniature.measure, torch.nn.Linear(1, 1), None, recipe)
    assert {name: one.device for name, one in zip(WORLD_RECIPES, asked, strict=True)} == {
        **{"h200": "auto", "h200_shown": "auto", "cpu": "cpu"}
    }
    # 60 are without the family that training never shows, which has 30; of chains 4 + 4, of rows 7 + 7.
    assert [len(one.problems) for one in asked] == [60, 90, 22]


@pytest.mark.slow
def test_the_smallest_recipe_goes_all_the_way_in_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rlkernel.policy.small.SHARD", "100KB")
    argv = ["--world", "cpu", "--dry-run"]
    assert command.main([*argv, "--limit-seconds", "0.001"]) == GOES_ON
    assert "the same command goes on" in capsys.readouterr().err
    assert command.main(argv) == 0
    out = tmp_path / "runs" / "cold_start" / "dry_run"
    assert len(list(out.glob("model-*.safetensors"))) > 1
    model, tokenizer = load_small(out)
    assert model.config.hidden_size == 48 and tokenizer.model_max_length == 4096
    facts = json.loads((out / "behaviour.json").read_text())
    assert facts["metrics"]["evaluations"] == 3  # one problem, one trajectory of three turns
    made = json.loads((out / "manifest.json").read_text())
    assert made["recipe"]["world"]["families"] == ["chain", "row"] and made["corpus"]["conversations"] == 3  # 1 extra, 1 of each
    assert sum(made["corpus"]["verdicts"].values()) == made["corpus"]["answers"] and made["corpus"]["timing"] == "modelled"


@pytest.mark.slow
def test_several_processes_make_one_policy(tmp_path: Path) -> None:
    launch = ("accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0")
    command = [sys.executable, "-m", *launch, "-m", "experiments.cold_start", "--world", "cpu", "--dry-run"]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "runs" / "cold_start" / "dry_run"
    model, _ = load_small(out)
    assert model.config.hidden_size == 48
    assert json.loads((out / "behaviour.json").read_text())["metrics"]["evaluations"] == 3
    said = done.stdout.splitlines()
    assert [sum(line.startswith(words) for line in said) for words in ("training: 0 of", "a model of", "wrote ")] == [1, 1, 1]


def test_several_processes_stop_together(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert command.main(["--world", "cpu", "--limit-seconds", "9"]) == 2
    assert "--limit-seconds is for one process: several would not stop after the same step" in capsys.readouterr().err
    assert command.main(["--world", "cpu", "--batch", "8"]) == 2
    assert "--batch 8: give a multiple of the 3 processes" in capsys.readouterr().err
