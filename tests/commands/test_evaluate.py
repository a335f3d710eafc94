"""One pair: what is printed while it is judged, and what of it the README shows."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from rlkernel.commands import under_way as under_way_module
from rlkernel.commands.cli import Evaluate
from rlkernel.commands.under_way import UnderWay
from rlkernel.evaluator.config import PATIENT, Limits

ROOT = Path(__file__).parents[2]


LIMITS = Limits(trace_seconds=30)


def console_of(written: io.StringIO, terminal: bool) -> Console:
    return Console(file=written, force_terminal=terminal, color_system=None, width=120, _environ={"TERM": "xterm"})


@pytest.mark.parametrize(
    ("terminal", "shown"), [(False, "evaluating [a] against b.py\n"), (True, "evaluating [a] against b.py 0:00:00")]
)
def test_what_is_under_way_is_said(terminal: bool, shown: str) -> None:
    written = io.StringIO()
    with UnderWay("evaluating [a] against b.py", console_of(written, terminal), LIMITS):
        first = written.getvalue()
    assert shown in first
    # On a terminal the line goes when the verdict comes: it is erased.
    assert written.getvalue().endswith("\x1b[2K") is terminal


def test_a_terminal_shows_the_stage_and_its_limit() -> None:
    written = io.StringIO()
    with UnderWay("a against b.py", console_of(written, terminal=True), LIMITS) as under_way, under_way.stage("trace"):
        pass
    assert "a against b.py: judging 0:00:00" in written.getvalue()
    with UnderWay("a against b.py", console_of(written, terminal=True), LIMITS) as under_way:
        with pytest.raises(KeyError), under_way.stage("trace"):
            raise KeyError
        under_way.begin("tracing")
    assert "a against b.py: tracing 0:00:00" in written.getvalue()


def test_elsewhere_a_stage_that_takes_long_is_told_by_lines_that_get_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_way_module.time, "monotonic", lambda: 100.0)
    written = io.StringIO()
    with UnderWay("a against b.py", console_of(written, terminal=False), LIMITS) as under_way, under_way.stage("trace"):
        for second in range(30):
            under_way.look(100.0 + second)
    # FIRST = 5 s, then twice as many each.
    told = "tracing the candidate (30 s at most)"
    assert written.getvalue().splitlines() == ["a against b.py", *(f"{n} s so far: {told}" for n in (5, 10, 20))]


def test_the_help_names_the_limits() -> None:
    told = " ".join(str(Evaluate.__doc__).split())
    for words in (f"traced for more than {PATIENT.trace_seconds} s", f"compiled for more than {PATIENT.compile_seconds} s"):
        assert words in told
    assert f"run for more than {PATIENT.run_seconds} s ({PATIENT.gpu_seconds:g} s on a GPU)" in told
