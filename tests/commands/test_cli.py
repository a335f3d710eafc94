"""The command line: one clear line and exit status 2 for what the user can fix; manifests resume."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from rlkernel.commands import doctor
from rlkernel.commands.cli import main, parse_overrides
from rlkernel.commands.evaluate import finished_ids, read_manifest
from rlkernel.errors import UsageError

RED_TEAM = Path(__file__).parents[1] / "red_team"


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["evaluate", "--foo"], "error: Unrecognized options: --foo (see rlkernel --help)"),
        (["nope"], "error: Unrecognized options: nope; Available subcommands: evaluate, compare, doctor (see rlkernel --help)"),
        (["evaluate", "--jobs", "two", "a", "b"], "error: --jobs two a b: give a whole number (see rlkernel --help)"),
        (["compare", "runs", "--step", "last"], "error: --step last: give a whole number (see rlkernel --help)"),
        (["evaluate", "a.py"], "error: expected REFERENCE.py CANDIDATE.py or --manifest FILE --out FILE, got 1 files"),
        (["evaluate", "/no/a.py", "b.py"], "error: /no/a.py: there is no such file; name the reference"),
        (["evaluate", "--jobs", "-1", "a", "b"], "error: --jobs -1: use 0 for one per core, or a positive number"),
        (["evaluate", "--profile", "x", "a", "b"], "error: --profile: unknown device profile 'x': use one of h200, a100"),
        (["evaluate", "--device", "tpu", "a", "b"], "error: --device: device 'tpu' is unknown: use auto, cpu, cuda or cuda:N"),
        (
            ["evaluate", "--manifest", "m.jsonl"],
            "error: --manifest needs --out RESULTS.jsonl, and no REFERENCE.py CANDIDATE.py beside it",
        ),
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
    err = capsys.readouterr().err
    assert err.startswith(f"error: {broken}: importing it raised")
    assert err.count("\n") == 1


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


@dataclass(frozen=True)
class Overrides:
    steps: int = 20
    out: str = "runs"


def test_overrides_keep_the_rest() -> None:
    assert parse_overrides(Overrides(steps=7), ["--out", "x"], "prog") == Overrides(7, "x")
    with pytest.raises(UsageError, match=r"Unrecognized options: --advantage, grpo \(see prog --help\)"):
        parse_overrides(Overrides(), ["--advantage", "grpo"], "prog")


def test_doctor_names_the_sandbox_and_every_package() -> None:
    rows = {row.what: row for row in doctor.findings()}
    assert "rlimits" in rows["sandbox"].found
    assert set(doctor.PACKAGES) <= set(rows)
    assert all(rows[package].found != "missing" for package in ("torch", "triton", "anyio"))
