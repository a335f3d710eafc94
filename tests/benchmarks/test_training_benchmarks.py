"""The benchmarks of training and of the loop at a tiny size: what they count, and that one failure loses nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from transformers import Qwen3Config

from benchmarks import bars, full_size, loop, memory, precision, staleness, training
from benchmarks.full_size import REACHED
from benchmarks.shapes import SHAPES, random_model


def test_shapes_have_the_published_numbers_of_parameters() -> None:
    # Qwen3-0.6B: 28 layers of 15.73M, 155.6M of embedding.
    for name, millions in (("0.6b", 596), ("1.7b", 1721), ("8b", 8191), ("14b", 14_768)):
        with torch.device("meta"):
            model = random_model(name, "meta", torch.bfloat16)
        assert round(sum(parameter.numel() for parameter in model.parameters()) / 1e6) == millions
        assert SHAPES[name]["vocab_size"] == 151_936


def test_the_memory_table_of_the_docs_is_the_one_that_is_printed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "larger.md").read_text(encoding="utf-8")
    assert memory.table() in page


@pytest.mark.slow
def test_training_counts_tokens_and_keeps_going_after_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "training.json"
    sizes = ["--steps", "2", "--prompts", "1", "--rollouts", "2", "--tokens", "12", "--micro-tokens", "700"]
    training.main(["--out", str(out), "--cases", "tiny-lora,huge-full,tiny-full", *sizes])
    lora, failed, full = json.loads(out.read_text())["cases"]
    assert failed == {"case": "huge-full", "error": failed["error"]} and failed["error"].startswith("case 'huge-full': write")
    assert 0 < lora["trained_parameters"] < lora["parameters"] and full["trained_parameters"] == full["parameters"] == 205_184
    run = training.make_run(1, 2, 3, 12, 2)
    for case in (lora, full):
        for step, noted in enumerate(case["steps"]):
            groups = training.made_up_groups(run.problems, run, 2048, step)
            turns = [turn for group in groups for trajectory in group.trajectories for turn in trajectory.turns]
            sampled = sum(len(turn.completion.token_ids) for turn in turns)
            assert noted["sampled_tokens"] == sampled
            # Per trajectory a prompt of 384 tokens and feedback of 100 between its three turns.
            assert noted["tokens"] == sampled + 2 * (384 + 2 * 100)
            assert noted["grad_norm"] > 0
    assert "tiny-lora" in capsys.readouterr().out


def test_first_and_last_steps_are_left_out() -> None:
    rows: list[dict[str, Any]] = [
        {"seconds_wall": wall, "seconds_evaluation": 2.0, "seconds_evaluation_hidden": 1.0} for wall in (9.0, 1.0, 3.0, 7.0)
    ]
    found = loop.settled(rows)
    assert (found["seconds_wall"], found["hidden"], found["seconds_gpu_wait_policy"]) == (2.0, 0.5, None)


@pytest.mark.slow
def test_both_sides_sample_the_same_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LOCKED_SECONDS", 0.001)
    monkeypatch.setattr(loop, "LATENCY_SECONDS", 0.001)
    monkeypatch.setenv("WANDB_MODE", "disabled")
    out = tmp_path / "loop.json"
    sizes = ["--steps", "1", "--prompts", "1", "--rollouts", "2", "--turns", "2", "--tokens", "6"]
    loop.main(["--out", str(out), "--model", "tiny", "--sides", "ours,stock,nobody", *sizes])
    ours, stock, failed = json.loads(out.read_text())["sides"]
    assert failed["error"] == "side 'nobody': use ours, pipelined, age2 or stock"
    # Every turn runs to its full length: 2 turns of 6 tokens; the stock trainer's only one, of 12.
    assert ours["steps"][0]["completion_length"] == 6 and ours["steps"][0]["evaluations"] == 2 * 2
    assert stock["steps"][0]["completion_length"] == 12
    for side in (ours, stock):
        assert side["seconds_wall"] >= side["seconds_training"] > 0 < side["seconds_generation"]
        assert side["seconds_evaluation"] > 0


def test_varied_lengths_have_the_mean_that_equal_ones_have() -> None:
    # Each of V equally likely tokens ends a completion if its id is below V x 0.797 / T; at most 2 T tokens.
    T, p = 300, loop.STOPS / 300
    mean = sum((1 - p) ** n for n in range(loop.MOST * T))
    assert mean == pytest.approx(T, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["float32", "bfloat16"])
def test_a_whole_step_of_full_training(weights: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "full.json"
    sizes = ["--prompts", "1", "--rollouts", "2", "--turns", "2", "--tokens", "8", "--steps", "2"]
    full_size.main(["--out", str(out), "--shape", "tiny", "--weights", weights, "--evaluator", "simulated", *sizes])
    result = json.loads(out.read_text())
    seconds, last = result["seconds"], result["steps"][-1]
    assert len(result["steps"]) == 2 and last["evaluations"] == 2 * 2
    assert seconds["whole step"] >= seconds["sampling"] + seconds["training"] > seconds["of it the update"] > 0
    assert result["tokens_per_second"]["sampling"] == pytest.approx(2 * 2 * 8 / seconds["sampling"])
    # A prompt of 384 tokens, two turns of 8, feedback of 100 between them.
    assert result["tokens_per_second"]["training"] == pytest.approx(2 * (384 + 16 + 100) / seconds["training"])
    assert result["predicted_gib"] == pytest.approx(sum(result["parts_gib"].values()) + result["cache_gib"])
    assert result["parts_gib"]["weights"] * 2**30 == 205_184 * (2 if weights == "bfloat16" else 4)
    assert "whole step" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("arm", "turns"), [("trloo_mrs_pr_prs", "2"), ("hrd_0.5_single_turn", "1")])
def test_a_whole_step_of_an_arm_of_the_papers(arm: str, turns: str, tmp_path: Path) -> None:
    out = tmp_path / "full.json"
    sizes = ["--prompts", "2", "--rollouts", "2", "--turns", turns, "--tokens", "8", "--steps", "1"]
    full_size.main(["--out", str(out), "--shape", "tiny", "--arm", arm, "--evaluator", "simulated", *sizes])
    result = json.loads(out.read_text())
    assert (result["arm"], result["weights"], len(result["steps"])) == (arm, "bfloat16", 1)
    assert result["steps"][-1]["evaluations"] == 2 * 2 * int(turns)
    parts = sum(result["parts_gib"].values()) - result["parts_gib"]["moments"]  # which the first step has not
    assert result["predicted_gib"] == pytest.approx(parts + result["cache_gib"])


@pytest.mark.slow
def test_a_whole_step_with_weights_in_pieces(tmp_path: Path) -> None:
    out = tmp_path / "full.json"
    sizes = ["--prompts", "1", "--rollouts", "2", "--turns", "2", "--tokens", "8", "--steps", "2"]
    launch = [
        "accelerate.commands.launch",
        "--config_file",
        "examples/fsdp2.yaml",
        "--num_processes",
        "2",
        "--main_process_port",
        "0",
    ]
    flags = ["--out", str(out), "--shape", "tiny", "--weights", "float32", "--evaluator", "simulated", *sizes]
    subprocess.run([sys.executable, "-m", *launch, "-m", "benchmarks.full_size", *flags], check=True, capture_output=True)
    result = json.loads(out.read_text())
    assert result["processes"] == 2 and result["steps"][-1]["evaluations"] == 2 * 2
    assert result["parameters"] == 205_184 and result["parts_gib"]["weights"] * 2**30 == 205_184 * 4 // 2


def test_the_limits_of_a_card() -> None:
    run, config = training.make_run(4, 8, 3, 1024, 1), Qwen3Config(**SHAPES["8b"])
    # 8.19e9 parameters without the 0.62e9 of the embedding. A row has 384 + 3 * 1024 + 2 * 100 tokens, at the mean 2020 of them.
    assert full_size.row_tokens(run) == 3656
    matrices = 7_568_000_000
    read = 2 * matrices + 32 * 2020 * 147_456
    assert full_size.sampling_limit(config, run, matrices) == pytest.approx(32 * 4.8e12 / read)
    assert full_size.training_limit(config, run, matrices) == pytest.approx(0.6 * 989e12 / (6 * matrices + 6 * 4096 * 3656 * 36))


def test_the_steady_state_is_between_the_first_steps_and_those_that_have_nothing_to_sample_beside_them() -> None:
    rows = [{"step": step} for step in range(1, 8)]
    assert [row["step"] for row in staleness.steady(rows, 0)] == [2, 3, 4, 5, 6]
    assert [row["step"] for row in staleness.steady(rows, 2)] == [2, 3, 4, 5]
    assert staleness.steady(rows[:2], 2) == rows[:2]


@pytest.mark.slow
def test_ages_are_measured_in_chunks(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LOCKED_SECONDS", 0.001)
    monkeypatch.setattr(loop, "LATENCY_SECONDS", 0.001)
    monkeypatch.setenv("WANDB_MODE", "disabled")
    sizes = ["--steps", "5", "--prompts", "1", "--rollouts", "2", "--turns", "2", "--tokens", "4"]
    command = ["--out", str(tmp_path), "--cards", "0", "--model", "tiny", "--evaluator", "simulated", *sizes]
    # What is begun takes longer than the limit, so that the second arm is left for the next command.
    assert staleness.main([*command, "--arms", "age0,age2_in_flight", "--limit-seconds", "0.01"]) == 75
    assert [file.name for file in tmp_path.iterdir()] == ["cards0-age0.json"]
    before = (tmp_path / "cards0-age0.json").read_bytes()
    assert staleness.main([*command, "--arms", "age0,age2_in_flight"]) == 0
    assert (tmp_path / "cards0-age0.json").read_bytes() == before
    found = json.loads((tmp_path / "cards0-age2_in_flight.json").read_text())
    # Of 16 tokens at most, 8 come from weights that are two steps old.
    assert found["refresh_tokens"] == 8 and 1 < found["age"] < 2
    assert [row["age"] for row in found["steps"][:2]] == [0, 1]
    assert found["seconds_least"] <= found["seconds_wall"] <= found["seconds_largest"]
    assert "age2_in_flight" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        staleness.main([*command, "--arms", "age9"])
    assert "--arms age9: use some of age0, age1, age2, age2_in_flight" in capsys.readouterr().err


def test_figures_stand_beside_their_bars_and_a_failure_loses_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(tiny: bool) -> dict[str, Any]:
        raise ValueError("no card")

    with mock.patch.dict(bars.ROWS, {"step": bars.Bar(fails, 8.0, "s")}):
        bars.main(["--out", str(tmp_path), "--tiny", "--rows", "sampling_8b,step,long,pages"])
    told = capsys.readouterr().out
    assert "ValueError" in told and "of the bandwidth limit" in told
    found = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in ("sampling_8b", "step", "long", "pages")}
    assert found["step"]["error"] == "no card"
    assert 0 < found["sampling_8b"]["figure"] < REACHED and found["sampling_8b"]["bar"] == REACHED
    assert 0 <= found["long"]["figure"] < 1 and found["long"]["seconds"] >= found["long"]["seconds_of_few"]
    # Conversations of half the length in the mean, and less before their ends, in the memory of two of full length.
    assert found["pages"]["of_equal"] == 2 and 1 < found["pages"]["figure"] < 8


@pytest.mark.slow
def test_both_formats_of_weights_learn_the_same(tmp_path: Path) -> None:
    precision.main(["--out", str(tmp_path / "out.json"), "--shape", "tiny", "--steps", "6", "--learning-rate", "0.01"])
    float32, bfloat16 = json.loads((tmp_path / "out.json").read_text())["runs"]
    assert [row["step"] for row in float32["validation"]] == [0, 5, 6]
    assert float32["validation"][-1]["reward"] > float32["validation"][0]["reward"] + 0.03
    for ours, theirs in zip(bfloat16["validation"], float32["validation"], strict=True):
        assert ours["reward"] == pytest.approx(theirs["reward"], abs=0.03)
    assert [row["loss"] for row in bfloat16["steps"]] != [row["loss"] for row in float32["steps"]]
    # In parts: the time is up at every checkpoint, of which each format has one in the middle and one at its end.
    parts = ["--out", str(tmp_path / "parts.json"), "--shape", "tiny", "--steps", "6", "--learning-rate", "0.01"]
    for _ in range(2):
        with pytest.raises(SystemExit, match="75"):
            precision.main([*parts, "--limit-seconds", "0", "--save-every", "4"])
    precision.main([*parts, "--limit-seconds", "1000", "--save-every", "4"])
    for whole, cut in zip((float32, bfloat16), json.loads((tmp_path / "parts.json").read_text())["runs"], strict=True):
        assert cut["validation"] == whole["validation"]
        for mine, theirs in zip(cut["steps"], whole["steps"], strict=True):
            assert {**mine, "seconds": 0} == {**theirs, "seconds": 0}
    assert [path.name for path in tmp_path.iterdir()].count("parts.json.work") == 0
