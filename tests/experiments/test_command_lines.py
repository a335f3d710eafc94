"""Every command of `experiments` with nothing on its command line, and with a flag that does not exist."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments.catalogue import NAMES, load
from rlkernel.commands import experiment

BEGIN = {
    **dict.fromkeys((*NAMES, "all"), "rlkernel.training.command.main"),
    "sequential_scaling": "experiments.sequential_scaling.measure_all",
    "estimator_bias": "experiments.estimator_bias.study",
    "off_policy_bias": "experiments.off_policy_bias.study",
    "cold_start": "experiments.cold_start.command.make",
}
"""Command -> what it calls when its work begins."""
OTHERS = ("benchmark", "claims", "power", "prepare_conversations", "prepare_problems", "results", "world.check")
WITH_LIST = (*NAMES, "all", "sequential_scaling")


def command(name: str) -> Callable[[Sequence[str]], int]:
    """What `python -m experiments.<name>` calls with the words of its command line."""
    if name in NAMES:
        return lambda argv: experiment.main(load(name), argv)
    module = importlib.import_module(f"experiments.{name}")
    if hasattr(module, "__path__"):  # a room, whose command is a file
        module = importlib.import_module(f"experiments.{name}.command")
    main: Callable[[Sequence[str]], int] = module.main
    return main


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty directory on a machine without a GPU."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rlkernel.evaluator.cards.gpus.select", lambda device: ())


@pytest.mark.parametrize("name", BEGIN)
def test_an_empty_command_line_gets_to_where_its_work_begins(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(BEGIN[name], begun)
    assert command(name)([]) == 130


@pytest.mark.parametrize("name", (*BEGIN, *OTHERS, "world.oracle", "world.difficulty", "world.page"))
def test_a_flag_that_does_not_exist_is_one_line_and_exit_2(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(name)(["--bogus", "3"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: Unrecognized options: --bogus") and error.count("\n") == 1


@pytest.mark.parametrize("name", (*BEGIN, *OTHERS, "world.oracle", "world.difficulty", "world.page"))
def test_help_says_what_the_command_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status: object = command(name)(["--help"])
    except SystemExit as stop:
        status = stop.code
    assert status in (0, None)
    usage, about = capsys.readouterr().out.split("\n\n")[:2]
    assert usage.startswith("usage: python -m experiments.") and len(about.split()) > 5
    assert "flags of the command" not in about


@pytest.mark.parametrize("name", WITH_LIST)
@pytest.mark.parametrize(
    "wrong",
    [("--turns", "0"), ("--limit-seconds", "0"), ("--limit-seconds", "nan"), ("--seeds",), ("--preset", "huge")],
    ids=" ".join,
)
def test_a_wrong_value_is_told_beside_list_too(name: str, wrong: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert command(name)(["--list", *wrong]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert wrong[0].removeprefix("--").replace("-", "_") in printed.err.replace("-", "_")


def test_a_list_is_of_what_the_flags_make_of_the_arms(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("multi_turn_estimators")(["grpo", "trloo", "--steps", "5", "--list"]) == 0
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines() if line[0] != " "]
    assert rows == [["arm", "steps"], ["grpo", "5"], ["trloo", "5"]]
