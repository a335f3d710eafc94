"""What is measured inside of a card's process: phases by where they lie, and no other process than the card's."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import card_profile
from benchmarks.card_probe import PHASES, VARIABLE, Job, Phases, Probe

JOB = Job("found", skip=1, functions=5)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("benchmarks.card_probe.time.perf_counter", lambda: now[0])
    return now


def test_a_phase_is_told_apart_by_the_phases_around_it(clock: list[float]) -> None:
    phases = Phases()

    def work() -> None:
        clock[0] += 2.0

    inner = phases.timed("inner", work)

    def around() -> None:
        clock[0] += 1.0
        inner()
        inner()

    phases.timed("outer", around)()
    inner()
    outer, alone = phases.root.inner["outer"], phases.root.inner["inner"]
    assert (outer.calls, outer.seconds, outer.own_seconds) == (1, 5.0, 1.0)
    assert (outer.inner["inner"].calls, outer.inner["inner"].seconds, alone.seconds) == (2, 4.0, 2.0)
    assert re.search(r"3 +6.000 +6.000 +2000.0000  inner", phases.flat())
    assert re.search(r"2 +4.000 +2000.0000 +4.000    inner", phases.tree())


def test_a_phase_that_raises_counts_and_ends(clock: list[float]) -> None:
    phases = Phases()

    def broken() -> None:
        clock[0] += 1.0
        raise ValueError("no")

    failing = phases.timed("failing", broken)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            failing()
    assert {name: one.calls for name, one in phases.root.inner.items()} == {"failing": 2}
    assert phases.root.inner["failing"].inner == {}


def test_counts_begin_after_the_first_candidates(clock: list[float]) -> None:
    probe = Probe(Job("found", skip=2, functions=0))

    def judged() -> str:
        clock[0] += 1.0
        return "right"

    evaluate = probe._counted(probe.phases.timed("evaluate", judged))
    assert [evaluate() for _ in range(5)] == ["right"] * 5
    assert probe.phases.root.inner["evaluate"].calls == 3
    assert probe.text().startswith("3 candidates in 3.00 s, of which 0.00 s without a question")


@pytest.mark.parametrize(("gpu", "module"), [("", card_profile.START), ("GPU-1", "benchmarks.card_probe")])
def test_only_a_card_is_looked_at(monkeypatch: pytest.MonkeyPatch, gpu: str, module: str) -> None:
    made: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **rest: made.append((command, rest)))
    start = card_profile.started(JOB)
    start(["python", "-m", card_profile.START, "7"], env={"CUDA_VISIBLE_DEVICES": gpu}, cwd="here")
    ((command, rest),) = made
    assert command == ["python", "-m", module, "7"] and rest["cwd"] == "here"
    assert (Job(**json.loads(rest["env"][VARIABLE])) == JOB) if gpu else VARIABLE not in rest["env"]


@pytest.mark.parametrize("module", [name for name in PHASES if name.startswith("rlkernel.")])
def test_what_is_timed_is_there(module: str) -> None:
    """The modules are read and not imported: those of the GPU need CUDA's bindings."""
    found = importlib.util.find_spec(module)
    assert found is not None and found.origin is not None
    names: set[str] = set()
    for node in ast.parse(Path(found.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)} | {
                f"{node.name}.__init__"
            }
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
    assert set(PHASES[module]) <= names


@pytest.mark.slow
def test_without_a_card_the_load_runs_and_one_line_says_that_there_is_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        card_profile.main(["--count", "1", "--jobs", "1", "--device", "cpu", "--out", str(tmp_path / "profile.txt")])
    said = capsys.readouterr()
    assert ended.value.code == 2 and "1 candidates of 1 problems" in said.out
    assert "no card was used: there is nothing to look at" in said.err
