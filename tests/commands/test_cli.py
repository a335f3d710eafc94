"""The command line: one clear line and exit status 2 for what the user can fix."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rlkernel.commands import cli
from rlkernel.commands.cli import COMMANDS, main


@pytest.fixture(autouse=True)
def _says_nothing_of_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said first depends on what other tests have imported."""
    monkeypatch.setattr(cli, "loading", lambda *_: None)


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ([], "error: Expected one of {evaluate, compare, metrics, doctor, serve}. (see rlkernel --help)"),
        (["evaluate", "--foo"], "error: Unrecognized options: --foo (see rlkernel evaluate --help)"),
        (
            ["nope"],
            "error: there is no `rlkernel nope`; the commands are evaluate, compare, metrics, doctor, serve "
            "(see rlkernel --help)",
        ),
        (["evaluate", "--jobs", "two", "a", "b"], "error: --jobs two: give a whole number (see rlkernel evaluate --help)"),
        (["compare", "runs", "--step", "last"], "error: --step last: give a whole number (see rlkernel compare --help)"),
        (["evaluate", "a.py"], "error: expected REFERENCE.py CANDIDATE.py or --manifest FILE --out FILE, got 1 files"),
        (["evaluate", "/no/a.py", "b.py"], "error: /no/a.py: there is no such file; name the reference"),
        (["evaluate", "--jobs", "-1", "a", "b"], "error: --jobs -1: use 0 for one per core, or a positive number"),
        (
            ["evaluate", "--profile", "x", "a", "b"],
            "error: --profile: unknown device profile 'x': use one of h200, a100, h100, l40s, rtx4090, b200",
        ),
        (
            ["evaluate", "--device", "tpu", "a", "b"],
            "error: --device: device 'tpu' is unknown: use auto, cpu, cuda, cuda:N or ray",
        ),
        (
            ["evaluate", "--device", "cpu", "--compiled", "a", "b"],
            "error: --compiled: references run under torch.compile on a GPU only: leave it out where there is none",
        ),
        (
            ["evaluate", "--manifest", "m.jsonl"],
            "error: --manifest needs --out RESULTS.jsonl, and no REFERENCE.py CANDIDATE.py beside it",
        ),
        (
            ["evalute", "a", "b"],
            "error: there is no `rlkernel evalute`; perhaps you meant evaluate; the commands are evaluate, compare, metrics, "
            "doctor, serve (see rlkernel --help)",
        ),
        (
            ["evaluate", "--problems", "/nowhere", "a", "b"],
            "error: --problems /nowhere: there is no such file or directory; give a directory that holds level1/*.py or problem "
            "files",
        ),
        (["serve"], "error: --problems is missing: give a directory of files in KernelBench's format, a table or a data set"),
        (["evaluate", "--manifest", "/no.jsonl", "--out", "o"], "error: /no.jsonl: there is no such file; name the manifest"),
    ],
)
def test_one_line_and_exit_status_2(args: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    captured = capsys.readouterr()
    assert captured.err.strip() == line
    assert captured.out == ""


@pytest.mark.slow
def test_broken_reference_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_that_name\n")
    assert main(["evaluate", str(broken), str(broken)]) == 2
    under_way, *_, told = capsys.readouterr().err.splitlines()
    assert under_way == f"evaluating broken against {broken}"
    assert told.startswith(f"error: {broken}: importing it raised")


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert all(f"\n{name}: " in printed for name in COMMANDS)
    with pytest.raises(SystemExit) as stop:
        main(["compare", "--help"])
    assert stop.value.code == 0
    assert "usage: rlkernel compare" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--help"], ["evaluate", "--help"], ["compare", "--help"]])
def test_help_waits_for_no_library(words: list[str]) -> None:
    """torch alone takes seconds to import. The module form is the same command."""
    watched = ("torch", "numpy", "wandb", "transformers", "matplotlib")
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['rlkernel', *{words!r}]\n"
        "try:\n    runpy.run_module('rlkernel', run_name='__main__')\n"
        "except SystemExit as stop:\n    assert stop.code == 0\n"
        f"print('imported:', [name for name in {watched!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, *_, last = done.stdout.splitlines()
    assert first.startswith("usage: rlkernel") and last == "imported: []"


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "rlkernel", "nope"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: there is no `rlkernel nope`; the commands are evaluate, compare, metrics, doctor")
