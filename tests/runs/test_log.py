"""What is written of a step: rows, a sample of trajectories, and the progress that people see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.config import Run
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.runs.log import TEXT_LIMIT, Display, RunLog, choose, transcript
from rlkernel.types import Completion, Evaluation, Group, Problem, Status, Trajectory, Turn

PROBLEM = Problem("p", 1, "train", "")


def turn(status: Status, reward: float, speedup: float | None = None, tokens: int = 4, **facts: Any) -> Turn:
    stop = facts.pop("stop", "stop")
    completion = Completion((1,) * tokens, (0.0,) * tokens, "text", stop)
    return Turn((), completion, "code", Evaluation(status, "", speedup=speedup, **facts), reward, "")


def trajectory(*turns: Turn) -> Trajectory:
    return Trajectory(PROBLEM, turns)


LAZY = turn(Status.CORRECT, 1.0, speedup=1.0, coverage=0.1)
FAST = turn(Status.CORRECT, 1.25, speedup=1.5, coverage=0.9, tokens=8, cached=True)
HACK = turn(Status.NO_KERNEL, 0.0, speedup=9.0)
WRONG = turn(Status.INCORRECT, 0.0, tokens=12, stop="length")
GROUPS = (
    Group(PROBLEM, (trajectory(HACK, LAZY), trajectory(FAST, WRONG))),
    Group(PROBLEM, (trajectory(WRONG), trajectory(HACK, HACK))),
)


def test_chosen_transcripts_show_each_kind_once() -> None:
    (first, second), (third, fourth) = (group.trajectories for group in GROUPS)
    # The best, the one that improved (which is also the lazy one), a hack, and the rest.
    assert [id(t) for t in choose(GROUPS, 8)] == [id(t) for t in (second, first, fourth, third)]
    assert [id(t) for t in choose(GROUPS, 2)] == [id(t) for t in (second, first)]


def test_transcripts_come_from_all_of_the_problems() -> None:
    """Ten that are alike: the first is the best, and of the nine others every third is taken, at places 1, 4 and 7."""
    many = [trajectory(WRONG) for _ in range(10)]
    groups = tuple(Group(PROBLEM, (one,)) for one in many)
    places = {id(one): n for n, one in enumerate(many)}
    assert [places[id(one)] for one in choose(groups, 4)] == [0, 2, 5, 8]
    assert [places[id(one)] for one in choose(groups, 20)] == list(range(10))


def test_transcripts_are_bounded_json() -> None:
    long = Turn((), Completion((1,), (0.0,), "x" * 10**6, "stop"), "y" * 10**6, Evaluation(Status.TIMEOUT, ""), 0.0, "z" * 10**6)
    text = json.dumps(transcript(trajectory(long), "w" * 10**6))
    assert 4 * TEXT_LIMIT < len(text) < 4 * TEXT_LIMIT + 2000
    assert transcript(trajectory(HACK), "prompt")["turns"][0]["evaluation"]["status"] == "no_kernel"


@pytest.fixture
def run() -> Run:
    return Run("arm", (PROBLEM,), KernelEnvironment(), SpeedReward(), TRLOO(), UniformCredit(), steps=7, seed=3)


def test_the_display_shows_each_row_and_the_progress(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"reward": 0.5, "fast_1": 0.25, "fast_1.2": 0.1, "hacking_rate": 0.05, "lazy_rate": 0.0}
    with Display(run, step=2) as display:
        display.row("train", 3, values)
    line = "arm seed 3  step 3/7  train  reward 0.50 fast@1 25% fast@1.2 10% hack 5% lazy 0%\n"
    assert capsys.readouterr().err == line

    terminal = Console(force_terminal=True, width=160, record=True, force_interactive=True)
    with Display(run, step=2, console=terminal) as display:
        display.expect("rollouts", 4)
        display.turn_done()
        display.row("train", 3, values)
        display.row("validation", 3, values)
    shown = terminal.export_text()
    assert "3/7" in shown and "fast@1 25%" in shown and "rollouts 1/4" in shown
    assert "arm seed 3  step 3/7  validation  reward 0.50" in shown

    narrow = Console(force_terminal=True, width=80, record=True, force_interactive=True)
    with Display(run, step=2, console=narrow) as display:
        display.row("train", 3, values)
    assert "reward 0.50 fast@1 25% fast@1.2 10% hack 5% lazy 0%" in narrow.export_text()


def test_rows_are_appended_with_their_split_and_step(tmp_path: Path) -> None:
    log = RunLog(tmp_path, None)
    log.write("train", 1, {"reward": 0.5, "mismatch": None})
    log.write("validation", 1, {"reward": 0.25})
    log.write_transcripts("validation", 1, {"p": "Rewrite"}, [trajectory(HACK)])
    log.finish()  # without Weights & Biases, nothing
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows == [
        {"split": "train", "step": 1, "reward": 0.5, "mismatch": None},
        {"split": "validation", "step": 1, "reward": 0.25},
    ]
    (told,) = [json.loads(line) for line in (tmp_path / "transcripts.jsonl").read_text().splitlines()]
    assert (told["split"], told["step"], told["problem"], told["prompt"]) == ("validation", 1, "p", "Rewrite")
    assert [turn["evaluation"]["status"] for turn in told["turns"]] == ["no_kernel"]
