"""Flags and arms from a file: what it may say, what wins, and one line for what it may not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from algorithms import TABLES
from algorithms.dr_grpo import DrGRPO
from algorithms.mrs import MRS
from algorithms.pr import PR
from algorithms.prs import PRS
from rlkernel.commands import experiment as experiments
from rlkernel.commands.asked import Flags
from rlkernel.commands.run_file import read
from rlkernel.config import Run, to_json
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import UsageError
from tests.commands.scripted_training import ARMS, BASE, ScriptedTraining, experiment

SWEEP = """
seeds = [4]
steps = 6
learning-rate = 1                       # a whole number is a number
run = ["grpo", "wide"]

[arms.wide]
base = "grpo"
advantage = "dr_grpo"
max_grad_norm = 2
corrections = [{ class = "MRS", low = 0.99 }, "prs"]
environment = { style = "full" }

[arms.paid]
base = "trloo"
reward = { class = "PR", weight = 0.25, inner = { cap = 2.0 } }
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def planned(tmp_path: Path, text: str, *argv: str) -> list[Run]:
    training = ScriptedTraining()
    words = [*argv, "--config", str(written(tmp_path, text)), "--out", str(tmp_path), "--preset", "cpu"]
    assert experiments.main(experiment(), words, train=training) == 0
    return [run for run, _ in training.jobs]


def test_a_file_adds_arms_and_sets_flags(tmp_path: Path) -> None:
    first, second = planned(tmp_path, SWEEP)
    flags: dict[str, Any] = {"seed": 4, "steps": 6, "learning_rate": 1.0}
    assert first == replace(BASE, **flags)
    assert second == replace(
        BASE, **flags, name="wide", advantage=DrGRPO(), max_grad_norm=2.0, corrections=(MRS(low=0.99), PRS()),
        environment=KernelEnvironment(style="full"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "title"),
    [((), "Runs of run.toml, with the arms of estimators"), (("grpo", "trloo"), "Estimators")],
)
def test_a_report_of_the_files_arms_does_not_speak_the_experiments_words(
    tmp_path: Path, words: tuple[str, ...], title: str
) -> None:
    planned(tmp_path, SWEEP, *words)
    page = (tmp_path / "estimators" / "report.html").read_text(encoding="utf-8")
    assert f"<b>{title}</b>" in page
    assert ("The claim." in page) == (title == "Estimators")


def test_words_of_the_command_line_win(tmp_path: Path) -> None:
    (run,) = planned(tmp_path, SWEEP, "paid", "--steps", "9", "--seeds", "5")
    assert (run.name, run.steps, run.seed) == ("paid", 9, 5)
    assert run.reward == PR(weight=0.25, inner=SpeedReward(cap=2.0))


def test_an_arm_of_a_file_keeps_its_values_at_every_preset(tmp_path: Path) -> None:
    file = read(written(tmp_path, '[arms.long]\nbase = "grpo"\nmax_new_tokens = 99\n'), Flags, ARMS, TABLES)
    adapt = file.after(lambda run: replace(run, max_new_tokens=4096, rollouts=2))
    assert (adapt(file.arms["long"]).max_new_tokens, adapt(file.arms["long"]).rollouts) == (99, 2)
    assert adapt(ARMS["grpo"]).max_new_tokens == 4096


def test_what_a_manifest_shows_can_be_written_back(tmp_path: Path) -> None:
    run = replace(BASE, name="again", corrections=(MRS(low=0.9), PRS()), reward=PR(weight=0.5), gamma=0.5)
    shown = {key: value for key, value in to_json(run).items() if key not in ("class", "name", "problems", "seed")}

    def toml(value: Any) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items() if item is not None) + " }"
        return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)

    lines = [f"{key} = {toml(value)}" for key, value in shown.items() if value is not None]
    text = '[arms.again]\nbase = "trloo"\n' + "\n".join(lines) + "\n"
    file = read(written(tmp_path, text), Flags, ARMS, TABLES)
    assert file.after(lambda arm: arm)(file.arms["again"]) == run


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("step = 3", "unknown step; perhaps you meant steps"),
        ("steps = true", "steps is True: give a whole number"),
        ("seeds = ['a']", "seeds is 'a': give a whole number"),
        ("run = ['grop']", "run: unknown arm 'grop'; perhaps you meant grpo"),
        ("[arms.x]\nsteps = 3", "arms.x.base is missing: name the arm that this one differs from, one of grpo, trloo"),
        ("[arms.grpo]\nbase = 'grpo'", "arms.grpo is an arm of the experiment: give yours another name"),
        ("[arms.x]\nbase = 'grpo'\ngama = 0.5", "unknown arms.x.gama; perhaps you meant gamma"),
        ("[arms.x]\nbase = 'grpo'\nadvantage = 'rlo'", "unknown arms.x.advantage = rlo; perhaps you meant rloo"),
        (
            "[arms.x]\nbase = 'grpo'\nadvantage = { class = 'MeanAbs' }",
            "unknown arms.x.advantage.class = MeanAbs: use one of GRPO, TRLOO, RLOO, DrGRPO, MaxRL, ReinforcePP, or register "
            "your own in algorithms/__init__.py",
        ),
        (
            "[arms.x]\nbase = 'grpo'\nreward = { class = 'SpedReward' }",
            "unknown arms.x.reward.class = SpedReward; perhaps you meant SpeedReward",
        ),
        ("[arms.x]\nbase = 'grpo'\nreward = { capp = 1.0 }", "unknown arms.x.reward.capp; perhaps you meant cap"),
        ("[arms.x]\nbase = 'grpo'\nreward = { cap = 'a' }", "arms.x.reward.cap is 'a': give a number"),
        ("[arms.x]\nbase = 'grpo'\nreward = 3", "arms.x.reward is 3: give a table"),
        (
            "[arms.x]\nbase = 'grpo'\nloss = 'cispo'",
            "arms.x.loss is 'cispo': give a table with some of its fields: kind, ratio, clip_low, clip_high, beta, entropy",
        ),
        (
            "[arms.x]\nbase = 'grpo'\nenvironment = 'full'",
            "arms.x.environment is 'full': give a table with some of its fields: style, answers",
        ),
        (
            "steps = 3\n[arms.x]\nbase = 'grpo'\nsteps = 4",
            "arms.x.steps is also at the top of the file, which would win: leave one of them out",
        ),
    ],
)
def test_what_a_file_may_not_say_is_told_in_one_line(tmp_path: Path, text: str, line: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as told:
        read(path, Flags, ARMS, TABLES)
    assert str(told.value) == f"--config {path}: {line}"


def test_a_file_that_is_not_there_or_not_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml: there is no such file$"):
        read(tmp_path / "none.toml", Flags, ARMS, TABLES)
    with pytest.raises(UsageError, match=r"run\.toml: cannot be read as TOML: .*line 1"):
        read(written(tmp_path, "steps = \n"), Flags, ARMS, TABLES)
    with pytest.raises(UsageError, match=r"run\.toml: it is empty; name what this run does otherwise, such as seeds = "):
        read(written(tmp_path, "# nothing\n"), Flags, ARMS, TABLES)


def test_an_arm_that_no_run_can_be_is_told_when_it_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "[arms.x]\nbase = 'grpo'\ngamma = 3\n")
    assert experiments.main(experiment(), ["--config", str(path), "--out", str(tmp_path)], train=ScriptedTraining()) == 2
    assert capsys.readouterr().err == f"error: --config {path}: arms.x: Run.gamma is 3.0: a discount is between 0 and 1\n"


def test_help_shows_what_each_preset_makes_of_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert experiments.main(experiment(), ["--help"], train=ScriptedTraining()) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "sample in one turn. (cpu 512, paper 4096)" in told
    assert "the preset's. (cpu 0 1, paper 0)" in told
