"""Which turns of runs are shown, and where the page says that they are from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.results.transcripts import choose, links, transcripts_page
from rlkernel.report.summary import RunRecord
from rlkernel.types import Evaluation, LaunchFact, OpFact, Status

LAUNCH, MM, ADD = (
    LaunchFact("k", 1, 10.0, 0.2, True, None, None),
    OpFact("aten.mm", 1, 80.0, 0.8),
    OpFact("aten.add", 1, 5.0, 0.1),
)


def turn(status: Status, reward: float, speedup: float | None = None, **facts: Any) -> dict[str, Any]:
    evaluation = Evaluation(status, "", speedup=speedup, speedup_low=speedup, **facts).to_json()
    return {
        "completion": f"an answer of {reward}",
        "code": "code",
        "evaluation": evaluation,
        "reward": reward,
        "feedback": "told",
    }


def run(
    tmp_path: Path, arm: str, seed: int, trajectories: list[list[dict[str, Any]]], split: str = "train", **fields: Any
) -> RunRecord:
    directory = tmp_path / f"{arm}-seed{seed}-00000000"
    directory.mkdir()
    rows = [{"split": split, "step": 3, "problem": "level1/p", "prompt": "", "turns": turns} for turns in trajectories]
    (directory / "transcripts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return RunRecord(
        directory, arm, seed, "measured", {"run": {"reward": {"class": "SpeedReward"}, "corrections": [], **fields}}, ()
    )


LAZY = turn(Status.CORRECT, 0.9, 1.0, coverage=0.1, launches=(LAUNCH,), ops=(MM, ADD))
READ = turn(Status.CORRECT, 1.2, 1.5, coverage=0.9, launches=(LAUNCH,), ops=(ADD,))
SAME = turn(Status.CORRECT, 1.9, 3.0, coverage=0.4, launches=(LAUNCH,), ops=(MM,))
HACK = turn(Status.NO_KERNEL, 0.7)
BROKEN = turn(Status.COMPILE_ERROR, 0.0)


def test_mechanisms_are_shown_in_their_order_each_from_its_best_turn(tmp_path: Path) -> None:
    prs = {"corrections": [{"class": "PRS", "threshold": 0.3}]}
    runs = [
        run(tmp_path, "plain", 0, [[LAZY, SAME], [HACK], [BROKEN, READ]]),
        run(tmp_path, "prs", 1, [[SAME, LAZY], [LAZY, READ]], **prs),
        run(tmp_path, "unchecked", 2, [[BROKEN, HACK]], reward={"class": "UncheckedReward"}),
    ]
    away, paid, read = choose(runs)
    # Only the arm with PRS turns lazy kernels away, and only the one without the check pays hacks.
    assert (away["why"], away["arm"], away["seed"], away["turn"], away["line"]) == (
        "A lazy kernel that PRS turns away", "prs", 1, 2, 1,
    )  # fmt: skip
    assert (paid["why"], paid["arm"], paid["turn"]) == ("A hack that pays only without the check", "unchecked", 2)
    # The step of torch, aten.mm, is gone after LAZY -> READ, and still there after LAZY -> SAME.
    assert (read["why"], read["arm"], read["turn"], read["line"]) == ("A turn that reads the profile", "prs", 2, 2)
    assert [one["number"] for one in read["turns"]] == [1, 2] and read["turns"][0]["feedback"] == "told"


@pytest.mark.parametrize(
    ("trajectories", "titles"),
    [
        ([[BROKEN, READ], [SAME]], ["A mistake that is mended", "The fastest answer"]),
        ([[HACK, READ]], ["The fastest answer"]),
        ([[BROKEN]], []),
    ],
)
def test_what_the_runs_do_not_show_is_left_out(tmp_path: Path, trajectories: list[Any], titles: list[str]) -> None:
    assert [one["why"] for one in choose([run(tmp_path, "plain", 0, trajectories)])] == titles


def test_prs_turns_nothing_away_from_a_validation(tmp_path: Path) -> None:
    measured = run(tmp_path, "prs", 0, [[LAZY]], split="validation", corrections=[{"class": "PRS", "threshold": 0.3}])
    assert [one["why"] for one in choose([measured])] == ["The fastest answer"]


def test_a_page_leads_from_a_title_to_run_seed_and_turn(tmp_path: Path) -> None:
    chosen = choose([run(tmp_path, "plain", 4, [[BROKEN, READ]])])
    (link,) = links(chosen)[3:]
    assert link == "- [A mistake that is mended](transcripts.md#1-a-mistake-that-is-mended): `plain`, seed 4, step 3, turn 2"
    page = transcripts_page("An experiment", chosen)
    assert "## 1 A mistake that is mended\n" in page
    assert "problem `level1/p`; line 1 of `plain-seed4-00000000/transcripts.jsonl`." in page
    assert "**Turn 2**: correct, reward 1.20, speedup 1.50, coverage 90 %.\n\n````text\nan answer of 1.2\n````" in page
    assert links([]) == []
