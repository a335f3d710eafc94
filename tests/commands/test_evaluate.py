"""A manifest of candidates: bad lines are named, an interrupted one goes on."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from rlkernel.commands.cli import main
from rlkernel.commands.evaluate import finished_ids, read_manifest, under_way
from rlkernel.errors import UsageError

RED_TEAM = Path(__file__).parents[1] / "red_team"


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
