"""One pair: what is printed while it is judged, and what of it the README shows."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

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
