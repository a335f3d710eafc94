"""The page of a run: its validations step by step, and what its policy wrote in the last one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments.results.run_pages import name_of, pages_in, run_page, write_run_pages
from experiments.results.transcripts import places
from experiments.results.turns import shortened, turn_lines
from rlkernel.report.columns import METRICS
from rlkernel.report.summary import RunRecord
from rlkernel.types import Evaluation, Status


def turn(reward: float, text: str, **facts: Any) -> dict[str, Any]:
    evaluation = Evaluation(Status.CORRECT if reward else Status.INCORRECT, "", **facts).to_json()
    return {"completion": text, "code": text, "evaluation": evaluation, "reward": reward, "feedback": f"told of {text}"}


def run(tmp_path: Path, seed: int) -> RunRecord:
    """A run of two validations, which kept three trajectories of the last one as text."""
    directory = tmp_path / f"trloo-seed{seed}-0123abcd"
    directory.mkdir()
    kept = [
        [turn(0.0, "wrong"), turn(1.5, "mended", speedup=2.0, coverage=0.75)],
        [turn(2.0, "best", speedup=3.0, coverage=1.0)],
        [turn(0.0, "worst")],
    ]
    rows = [{"split": "validation", "step": 8, "problem": f"level1/p{i}", "turns": turns} for i, turns in enumerate(kept)]
    (directory / "transcripts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    manifest = {
        "fingerprint": "0123abcd" + 8 * "0", "finished": "2026-11-27T01:02:03", "git": {"commit": 40 * "a"},
        "machine": {"gpus": ["NVIDIA H200"]},
    }  # fmt: skip
    measured = tuple(
        {"step": step, **dict.fromkeys((metric.key for metric in METRICS), value)} for step, value in ((0, 0.1), (8, 0.25))
    )
    return RunRecord(directory, "trloo", seed, "measured", manifest, measured)


def test_a_page_has_each_validation_and_trajectories_of_the_last(tmp_path: Path) -> None:
    page = run_page(run(tmp_path, 3))
    assert page.startswith(
        "# `trloo`, seed 3\n\nDirectory `trloo-seed3-0123abcd`, finished 2026-11-27, NVIDIA H200, **measured** time, "
    )
    assert "| step | Reward | Fast@1 | Fast@1.2 | Fast@1.2, turn 1 | Hacking | Lazy |" in page
    assert "| 0 | 0.100 | 10.0 % | 10.0 % | 10.0 % | 10.0 % | 10.0 % |\n| 8 | 0.250 | 25.0 % |" in page
    best, mended = page.index("### 1 The highest reward"), page.index("### 2 Repaired after feedback")
    assert best < page.index("**Turn 1**: correct, reward 2.00, speedup 3.00, coverage 100 %.") < mended
    assert mended < page.index("**Turn 1**: incorrect, reward 0.00.\n\n````text\nwrong\n````") < page.index("told of mended")
    assert "worst" not in page


def test_an_answer_with_fences_of_its_own_stays_in_its_block(tmp_path: Path) -> None:
    page = turn_lines(shortened(1, turn(1.0, "````\n# no heading\n````")))
    assert page[2:6] == ["`````text", "````\n# no heading\n````", "`````", ""]


def test_pages_of_other_runs_are_deleted_and_experiments_link_those_that_are_there(tmp_path: Path) -> None:
    first, second = run(tmp_path, 0), run(tmp_path, 1)
    out = tmp_path / "out"
    out.mkdir()
    write_run_pages([first, second], out)
    assert pages_in(out) == {"trloo-seed0-0123abcd", "trloo-seed1-0123abcd"}
    (out / "mismatch").mkdir()
    manifests = out / "mismatch" / "manifests.json"
    manifests.write_text(json.dumps([{"arm": "trloo", "seed": 0, "fingerprint": first.manifest["fingerprint"]}]))
    write_run_pages([second], out)
    assert pages_in(out) == {name_of(first), name_of(second)}  # an experiment that was written earlier has the first
    manifests.write_text("[]")
    write_run_pages([second], out)
    assert pages_in(out) == {name_of(second)}
    rows = places("transfer", [first, second], "world", pages_in(out))[-2:]
    assert rows[0].startswith("| `trloo` | 0 | `arms/trloo-seed0-0123abcd/transcripts.jsonl` | `aaaaaaaaaaaa` |")
    assert rows[1].startswith("| `trloo` | 1 | [trloo-seed1-0123abcd](../runs/trloo-seed1-0123abcd.md) | `aaaaaaaaaaaa` |")
