"""One pair: what is printed while it is judged, and what of it the README shows."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path

import pytest
from rich.console import Console

from rlkernel.commands.cli import Evaluate, main
from rlkernel.commands.evaluate import show
from rlkernel.commands.under_way import UnderWay
from rlkernel.evaluator.config import PATIENT, Limits
from rlkernel.types import Closeness, Evaluation, Status

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
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    written = io.StringIO()
    with UnderWay("a against b.py", console_of(written, terminal=False), LIMITS) as under_way, under_way.stage("trace"):
        for second in range(30):
            under_way.look(100.0 + second)
    # FIRST = 5 s, then twice as many each.
    told = "tracing the candidate (30 s of a processor at most)"
    assert written.getvalue().splitlines() == ["a against b.py", *(f"{n} s so far: {told}" for n in (5, 10, 20))]


def test_the_help_names_the_limits() -> None:
    told = " ".join(str(Evaluate.__doc__).split())
    for words in (f"traced for more than {PATIENT.trace_seconds} s", f"compiled for more than {PATIENT.compile_seconds} s"):
        assert words in told
    assert f"run for more than {PATIENT.run_seconds} s ({PATIENT.gpu_seconds:g} s on a GPU)" in told


def shown(evaluation: Evaluation, profile: str = "a100") -> list[str]:
    written = io.StringIO()
    show(evaluation, Console(file=written, color_system=None, width=120), profile)
    return written.getvalue().splitlines()


def timed(status: Status, coverage: float, close: Closeness) -> Evaluation:
    return Evaluation(
        status, "", speedup=0.93, reference_us=93.0, candidate_us=100.0, timing="modelled", coverage=coverage, max_error=1e-8,
        kernelbench_close=close,
    )  # fmt: skip


def test_a_verdict_says_lazy_and_for_which_card_time_is_modelled() -> None:
    first, second, *_ = shown(timed(Status.CORRECT, 0.074, Closeness.TIGHT))
    assert first == "correct  outputs match the reference; lazy: its kernels take 7.4 % of the time, less than 30 %"
    assert second == "speedup 0.93x  (93.0 us -> 100.0 us, modelled for a100)  coverage 7.4 %  error 1.0e-08"
    some = shown(timed(Status.CORRECT, 0.34, Closeness.TIGHT))[0]
    assert some == "correct  outputs match the reference; its kernels take 34.0 % of the time, torch's operators the rest"
    assert shown(timed(Status.CORRECT, 0.5, Closeness.TIGHT))[0] == "correct  outputs match the reference"


def test_what_kernelbench_would_accept_is_no_praise_of_what_is_not_correct() -> None:
    assert shown(timed(Status.CORRECT, 1.0, Closeness.TIGHT))[-2] == "by KernelBench's rule: close, within 1e-4"
    hack = timed(Status.NO_KERNEL, 0.0, Closeness.TIGHT)
    assert shown(hack)[-2] == "KernelBench would accept these outputs, which are within 1e-4"
    assert shown(timed(Status.INCORRECT, 1.0, Closeness.NO))[-2] == "by KernelBench's rule: not close"


@pytest.mark.parametrize(
    ("status", "matches", "said"),
    [
        (Status.CORRECT, True, "results compared at batch = 256"),
        (Status.INCORRECT, False, "results compared at batch = 256"),
        (Status.NO_KERNEL, True, "results compared at batch = 256"),
        (Status.COMPILE_ERROR, None, "judged at batch = 256"),
        (Status.INVALID, None, "judged at batch = 256"),
    ],
)
def test_results_that_were_never_had_are_not_called_compared(status: Status, matches: bool | None, said: str) -> None:
    assert shown(Evaluation(status, "x", matches=matches, sizes={"batch": 256}))[-2] == said


@pytest.mark.slow
def test_a_person_is_told_where_a_wrong_result_differs_and_no_policy_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = str(ROOT / "envs/suite/level2/chain_bias_gelu_scale.py")
    right = (ROOT / "tests/red_team/honest/level2/chain_bias_gelu_scale.py").read_text()
    wrong = tmp_path / "wrong.py"
    wrong.write_text(right.replace("0.7071067811865476", "0.6"))
    assert main(["evaluate", reference, str(wrong), "--device", "cpu", "--check"]) == 1
    status, place, *_ = capsys.readouterr().out.splitlines()
    assert status.startswith("incorrect  output is wrong: relative error ")
    number = r"-?[\d.e-]+"
    assert re.fullmatch(rf"worst at \[\d+, \d+\]: {number}, expected {number}; 1,\d+ of 1,536 elements differ", place)
    assert main(["evaluate", reference, str(wrong), "--device", "cpu", "--json"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["status"] == "incorrect" and "worst" not in printed and "expected" not in printed


def test_a_check_of_a_manifest_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--manifest", "m.jsonl", "--out", "o.jsonl", "--check"]) == 2
    assert "--check is for one pair: of a manifest, read the statuses in --out" in capsys.readouterr().err
