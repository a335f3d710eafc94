"""What `--list` and `--methods` show, and what a run costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from algorithms import TABLES
from experiments.catalogue import NAMES, load
from rlkernel.commands.experiment import main
from rlkernel.commands.listing import cost
from tests.commands.scripted_training import ARMS, BASE, ScriptedTraining, experiment


def test_list_shows_what_differs_and_trains_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    training = ScriptedTraining()
    assert main(experiment(), ["--list", "--preset", "cpu"], train=training) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == ["arm", "grpo", "trloo"]
    grpo, trloo = (" ".join(lines[i + 1].split()) for i, line in enumerate(lines) if line.startswith(("grpo", "trloo")))
    assert grpo == "advantage = GRPO(std=True, ddof=1, eps=1e-06, baseline=turn)"
    assert trloo == "advantage = TRLOO(singleton=return)"
    assert max(map(len, lines)) <= 100
    assert not training.jobs


def test_the_list_has_of_each_arm_what_the_first_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    arms = {**ARMS, "longer": replace(BASE, name="longer", gamma=0.5)}
    assert main(experiment(arms, {"trloo": ("a_long_name",) * 12}), ["--list", "--preset", "cpu"], train=ScriptedTraining()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split() == ["gamma", "=", "0.5"]  # and not the advantage, which is the first's
    assert sum("a_long_name" in line for line in lines) == 3 and max(map(len, lines)) <= 100


def test_arms_of_a_file_are_compared_with_the_first_that_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(
        'run = ["slow", "wide"]\n[arms.slow]\nbase = "grpo"\nturns = 5\n'
        '[arms.wide]\nbase = "grpo"\nturns = 5\nloss = { clip_high = 0.4 }\n'
    )
    words = ["--config", str(tmp_path / "mine.toml"), "--list", "--preset", "cpu"]
    assert main(experiment(), words, train=ScriptedTraining()) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    # Both differ from the experiment's grpo in their turns, and from each other in one field of the loss.
    assert lines[1] == "what differs from slow"
    assert (lines[3], lines[5]) == ("loss = Loss(clip_high=0.28)", "loss = Loss(clip_high=0.4)")


def test_one_arm_alone_is_compared_with_the_first_of_the_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(experiment(), ["trloo", "--list", "--preset", "cpu"], train=ScriptedTraining()) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == "what differs from grpo" and lines[3:] == ["advantage = TRLOO(singleton=return)"]


def test_every_experiment_is_listed_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    for name in NAMES:
        assert main(load(name), ["--list", "--preset", "cpu"]) == 0
        assert len(capsys.readouterr().out.splitlines()) <= 50


def test_the_registered_methods_have_a_list_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(experiment(), ["--methods"], train=ScriptedTraining()) == 0
    lines = capsys.readouterr().out.splitlines()
    for kind, classes in TABLES.items():
        for name, cls in classes.items():
            assert any(line.split()[:2] == [kind, name] and f" {cls.__name__}(" in line for line in lines), name
    assert max(map(len, lines)) <= 100
    # A formula has the width of the screen.
    assert any(line.strip() == "A = (G - mean) / (std + eps) over the N valid samples of the group." for line in lines)


def test_cost_counts_every_answer() -> None:
    run = replace(BASE, steps=7, prompts_per_step=1, rollouts=4, turns=3, validation_every=5, validation_rollouts=2)
    # Training 7 * 1 * 4 = 28; measurements after 0, 5 and 7 steps of 3 problems x 2: 18; three turns each.
    assert cost(run) == 3 * (28 + 18)


def test_list_says_who_shares_an_arm_and_what_a_preset_needs(capsys: pytest.CaptureFixture[str]) -> None:
    shared = experiment(sharing={"trloo": ("reward_hacking",)})
    assert main(shared, ["--list", "--preset", "paper"], train=ScriptedTraining()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("trloo") and line.split()[-1] == "reward_hacking" for line in lines)
    assert any(line.startswith("grpo") and line.split()[-1] == "-" for line in lines)
    assert lines[-1] == "grpo, trloo: an estimate: 4096"
