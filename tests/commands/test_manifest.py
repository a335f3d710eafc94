"""A manifest of candidates: bad lines are named, an interrupted one goes on, and the end tells all statuses."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from rlkernel.commands import manifest as manifests
from rlkernel.commands.cli import main
from rlkernel.commands.manifest import evaluate_manifest, finished_ids, read_manifest, results_of, undecided_cases
from rlkernel.errors import BrokenReference, UsageError
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.judging.undecided import Undecided, undecided
from rlkernel.types import Evaluation, Problem, Status
from tests.evaluator.test_remarks import OTHERS, tuned

RED_TEAM = Path(__file__).parents[1] / "red_team"


async def evaluate(problem: Problem, code: str) -> Evaluation:
    """The candidate's text is its status; a reference may be broken."""
    if "broken" in problem.source:
        raise BrokenReference("b.py: it is broken")
    return Evaluation(Status(code), "")


@asynccontextmanager
async def open_scripted(**options: Any) -> AsyncIterator[Any]:
    yield SimpleNamespace(evaluate=evaluate, notices=())


@pytest.mark.parametrize("terminal", [True, False])
def test_the_end_tells_every_status_and_the_bar_comes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, color_system=None, width=80, _environ={"TERM": "xterm"})
    monkeypatch.setattr(manifests, "open_any_pool", open_scripted)
    monkeypatch.setattr(manifests, "Console", lambda **options: console)
    (tmp_path / "a.py").write_text("fine")
    (tmp_path / "b.py").write_text("broken")
    rows = [("a.py", status) for status in [*Status, Status.CORRECT]] + [("b.py", Status.CORRECT)] * 2
    for number, (_, status) in enumerate(rows):
        (tmp_path / f"{number}.txt").write_text(status)
    cases = [{"id": f"id{n}", "reference": reference, "candidate": f"{n}.txt"} for n, (reference, _) in enumerate(rows)]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    out = tmp_path / "res.jsonl"
    out.write_text('{"id": "id0", "status": "timeout"}\n{"id": "of another manifest", "status": "crash"}\n')
    with pytest.raises(UsageError, match=f"^2 of {len(rows)} cases could not be judged"):
        evaluate_manifest(tmp_path / "cases.jsonl", out, device="cpu", jobs=1, config=EvaluatorConfig())
    bar, _, end = written.getvalue().partition("not judged: ")
    counts = {str(status): 1 for status in Status} | {"correct": 2, "not judged": 2}
    first = str(rows[0][1])
    counts[first] -= 1
    counts["timeout"] += 1  # what was there already
    ordered = sorted(((name, count) for name, count in counts.items() if count), key=lambda item: (-item[1], item[0]))
    why, table, (*path,) = end.splitlines()[0], end.splitlines()[1:-1], end.splitlines()[-1:]
    assert why == f"id{len(rows) - 2} and 1 more: b.py: it is broken"
    assert [" ".join(line.split()) for line in table] == ["status cases", *(f"{name} {count}" for name, count in ordered)]
    assert path == [f"results: {out}"] and max(map(len, table)) <= 100
    found = [json.loads(line) for line in out.read_text().splitlines()]
    open_still = [row | {"detail": undecided("", {"ROWS": 16}, Undecided.LONGER)} for row in found if row["status"] != "crash"]
    out.write_text("".join(json.dumps(row) + "\n" for row in open_still))
    assert undecided_cases(results_of(read_manifest(tmp_path / "cases.jsonl"), out)) == counts["correct"]
    assert f" {len(rows) - 1}/{len(rows) - 1} " in bar and "…" not in bar, "the bar counts the broken ones, and is not cut"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{not json}\n", "line 1: not JSON"),
        ('{"id": "a"}\n', "line 1: field 'reference' is missing or not a string"),
        ("[]\n", "line 1: not an object"),
        ("\n\n", "no cases; write one JSON object per line"),
        ('{"id": "a", "reference": "r.py", "candidate": "none.py"}\n', "none.py: there is no such file; name the candidate of"),
        ('{"id": "a", "reference": "r.py", "candidate": "r.py"}\n' * 2, "line 2: id 'a' stands on an earlier line"),
    ],
)
def test_bad_manifests(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "r.py").write_text("x = 1\n")
    manifest = tmp_path / "cases.jsonl"
    manifest.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_manifest(manifest)


def test_a_manifest_is_not_taken_for_its_results(tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text("x = 1\n")
    manifest = tmp_path / "cases.jsonl"
    manifest.write_text('{"id": "a", "reference": "r.py", "candidate": "r.py"}\n')
    with pytest.raises(UsageError, match=r"cases.jsonl: the line of 'a' has no status, so it is no result; name another file$"):
        evaluate_manifest(manifest, manifest, device="cpu", jobs=1, config=EvaluatorConfig())


@pytest.mark.slow
def test_manifest_writes_one_object_per_case_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["honest", "decoy_unused"]
    (tmp_path / "reference.py").write_text((RED_TEAM / "reference.py").read_text())
    rows = []
    for name in names:
        (tmp_path / f"{name}.py").write_text((RED_TEAM / "hostile" / f"{name}.py").read_text())
        rows.append({"id": name, "reference": "reference.py", "candidate": f"{name}.py"})
    manifest, out = tmp_path / "cases.jsonl", tmp_path / "results.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out.write_text('{"id": "honest", "status": "from an earlier run"}\n{"id": "decoy_unu')  # torn by an interruption
    assert main(["evaluate", "--manifest", str(manifest), "--out", str(out), "--jobs", "1"]) == 0
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["status"]) for row in found] == [("honest", "from an earlier run"), ("decoy_unused", "no_kernel")]
    assert set(found[1]) >= {
        "detail",
        "correct",
        "matches",
        "speedup",
        "timing",
        "coverage",
        "launches",
        "ops",
        "max_error",
        "seconds",
    }
    assert "1 of 2 cases are there already" in capsys.readouterr().err
    assert finished_ids(out) == set(names)
    (tmp_path / "decoy_unused.py").write_text("import torch\n")
    assert main(["evaluate", "--manifest", str(manifest), "--out", str(out), "--jobs", "1"]) == 0
    again = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["status"]) for row in again] == [("honest", "from an earlier run"), ("decoy_unused", "invalid")]
    assert "judged again, because their texts are others now: 1 of 2 cases" in capsys.readouterr().err
    assert main(["evaluate", "--manifest", str(manifest), "--out", str(out), "--jobs", "1", "--precision", "strict"]) == 2
    told = "the line of 'decoy_unused' was judged with precision pytorch, and strict is asked for; name another file"
    assert told in capsys.readouterr().err
    assert len(out.read_text().splitlines()) == 2, "nothing is lost"


@pytest.mark.slow
def test_each_line_of_results_has_the_remarks_of_its_candidate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two at a time: nobody is told what another's tuner has."""
    rows = []
    for name, blocks in {"plain": (), "tuned": (512, 1024), "more": (256, 512, 1024)}.items():
        (tmp_path / "reference.py").write_text(tuned()[0])
        (tmp_path / f"{name}.py").write_text(tuned(*blocks)[1])
        rows.append({"id": name, "reference": "reference.py", "candidate": f"{name}.py"})
    manifest, out = tmp_path / "cases.jsonl", tmp_path / "results.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["evaluate", "--manifest", str(manifest), "--out", str(out), "--jobs", "2", "--device", "cpu"]) == 0
    found = {row["id"]: (row["status"], row.get("remarks")) for row in map(json.loads, out.read_text().splitlines())}
    told = {"tuned": [f"filled: one of its 2 {OTHERS}"], "more": [f"filled: one of its 3 {OTHERS}"]}
    assert found == {name: ("correct", told.get(name)) for name in ("plain", "tuned", "more")}
    assert "2 with `remarks`: what nobody has looked at, and what would decide it" in capsys.readouterr().err
