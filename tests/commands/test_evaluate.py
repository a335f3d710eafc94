"""One pair: what is printed while it is judged, and what of it the README shows."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from rlkernel.commands.cli import main
from rlkernel.commands.evaluate import under_way

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("terminal", "shown"), [(False, "evaluating [a] against b.py\n"), (True, "evaluating [a] against b.py 0:00:00")]
)
def test_what_is_under_way_is_said(terminal: bool, shown: str) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, color_system=None, width=80, _environ={"TERM": "xterm"})
    with under_way("evaluating [a] against b.py", console):
        first = written.getvalue()
    assert shown in first
    # On a terminal the line goes when the verdict comes: it is erased.
    assert written.getvalue().endswith("\x1b[2K") is terminal


@pytest.mark.slow
def test_the_readme_shows_what_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shown = (ROOT / "README.md").read_text().partition("    rlkernel evaluate ")[2]
    command, _, shown = shown.partition("\n\n")
    assert main(["evaluate", *command.split(), "--device", "cpu"]) == 0
    printed = capsys.readouterr().out

    def lines(text: str) -> list[str]:  # times, errors and registers depend on the machine and on versions
        return [re.sub(r"\d+\.\d+(e-\d+)?|\d+(?= registers)", "N", " ".join(line.split())) for line in text.splitlines()]

    assert lines(shown.partition("\n\n")[0]) == lines(printed)
