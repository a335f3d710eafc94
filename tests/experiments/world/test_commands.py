"""The commands about the world: what they judge, that they go on where they stopped, and what a search finds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from envs.world.drafts import Draft, code
from envs.world.schedule import Stage
from envs.world.suite import validation_tasks
from experiments.world import check, difficulty, oracle
from experiments.world.judged import Item, Ledger, item_of, judge, open_ledger
from rlkernel.errors import GOES_ON
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.types import Evaluation, Oracle, Precision, Problem, Status

TASK = validation_tasks(["chain"])[0]


class Scripted:
    """A pool whose verdict follows from the text: a block of 2048 with 8 warps in one kernel is the fastest."""

    jobs = 2
    device = "scripted"
    evaluations = 0

    async def evaluate(self, problem: Problem, text: str) -> Evaluation:
        await anyio.lowlevel.checkpoint()
        self.evaluations += 1
        if "BLOCK=512," in text:
            return Evaluation(Status.INCORRECT, "scripted")
        speedup = 1.0 + ("BLOCK=2048," in text) + ("num_warps=8" in text) + (text.count("@triton.jit") == 1)
        return Evaluation(
            Status.CORRECT, "", speedup=speedup, reference_us=100.0, candidate_us=100.0 / speedup, timing="measured"
        )


def searched(ledger: Ledger, pool: Scripted, until: float = math.inf) -> dict[str, list[Item]] | None:
    async def run() -> dict[str, list[Item]] | None:
        return await oracle.search([TASK], pool, ledger, until=until, tf32=False)  # type: ignore[arg-type]

    return anyio.run(run)


def test_the_search_finds_the_best_point_and_judges_each_once(tmp_path: Path) -> None:
    pool, ledger = Scripted(), Ledger(tmp_path / "ledger.jsonl")
    found = searched(ledger, pool)
    assert found is not None
    points = found[TASK.name]
    row = oracle.row_of(points, ledger)
    assert row["speedup"] == 4.0
    assert [stage[3]["block"] for stage in row["schedule"] if stage[2] == "flat"] == [2048]  # type: ignore[attr-defined]
    assert len(points) == len({code(item.draft) for item in points}) == pool.evaluations >= 100
    assert row["correct"] == sum("BLOCK=512," not in code(item.draft) for item in points)


def test_a_search_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    assert searched(Ledger(path), Scripted(), until=0.0) is None
    whole = searched(Ledger(path), Scripted())
    path.write_text(path.read_text()[:-20])  # the last row is torn
    pool = Scripted()
    again = searched(Ledger(path), pool)
    assert pool.evaluations == 1
    assert whole is not None and again is not None
    assert [item.key for item in whole[TASK.name]] == [item.key for item in again[TASK.name]]
    assert searched(Ledger(path), pool) is not None and pool.evaluations == 1, "the row after the torn one was lost"


def test_items_are_told_apart_by_their_code(tmp_path: Path) -> None:
    one, other = (
        Draft(TASK, (Stage(0, 1, "flat", (("block", b), ("warps", 4))), Stage(1, len(TASK.steps)))) for b in (512, 1024)
    )
    assert item_of(one).key != item_of(other).key and item_of(one).key.startswith(TASK.name)
    ledger, pool = Ledger(tmp_path / "ledger.jsonl"), Scripted()

    async def run() -> bool:
        return await judge([item_of(one), item_of(other)], pool, ledger, until=math.inf)  # type: ignore[arg-type]

    assert anyio.run(run)
    assert {row["status"] for row in Ledger(ledger.path).rows.values()} == {"correct", "incorrect"}


def test_honest_drafts_are_the_same_every_time_and_of_all_families() -> None:
    drafts = [check.honest_draft(k) for k in range(16)]
    assert drafts == [check.honest_draft(k) for k in range(16)]
    assert all(draft.honest for draft in drafts) and len({draft.task.family for draft in drafts}) == 8


@pytest.mark.slow
def test_the_check_tells_the_families_and_stops_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    argv = ["--count", "1", "--families", "chain", "--device", "cpu"]
    assert check.main([*argv, "--limit-seconds", "0.001"]) == GOES_ON
    assert check.main(argv) == 0
    assert "chain        correct 1\n1 honest drafts, 0 not correct" in capsys.readouterr().out


def test_the_loss_on_another_shape_by_hand(tmp_path: Path) -> None:
    """The best schedule of the first shape has 2 of 4 on the second, and the second's best 1 of 2 on the first."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    draft = Draft(TASK, ())
    speeds = {"a1": 2.0, "a2": 1.0, "b1": 2.0, "b2": 4.0}
    for key, value in speeds.items():
        ledger.add(key, Evaluation(Status.CORRECT, "", speedup=value))
    group = [[Item("a1", draft), Item("a2", draft)], [Item("b1", draft), Item("b2", draft)]]
    assert difficulty.losses([group], ledger) == [0.5, 0.5]


def test_the_teachers_level_is_of_the_problems_that_the_metric_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four problems: one without an oracle, one with 1.04, which the metric leaves out as too little to gain, one of another
    timing, and one with 1.1."""
    tasks = validation_tasks(["chain"])[:4]
    table = {task.name: (Oracle("card", "measured", speedup),) for task, speedup in zip(tasks[1:3], (1.04, 1.1), strict=True)}
    table[tasks[3].name] = (Oracle("card", "modelled", 3.0),)
    monkeypatch.setattr(difficulty, "load_oracles", lambda: table)
    assert difficulty.gains_of(tasks, "measured") == {tasks[2].name: math.log(1.1)}


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    found: dict[str, Any] = {
        "timing": "modelled",
        "best_speedup": {"chain": [1.5, 3.0], "row": [2.0]},
        "right_by_kind": {"lazy": 0.9, "tuned": 0.3},
        "fast_by_kind": {"lazy": 0.0, "tuned": 0.25},
        "loss_on_another_shape": {"row": {"median": 0.1, "most": 0.4}},
    }
    difficulty.draw_figure(json.loads(json.dumps(found)), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_another_card_of_the_same_model_goes_on_with_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def ledger(uuid: str, name: str, profile: str = "h200", **changes: Any) -> Path:
        pool = SimpleNamespace(
            runners=[SimpleNamespace(gpu=SimpleNamespace(name=name, uuid=uuid))],
            device=f"{name} {uuid}",
            config=EvaluatorConfig(profile, **changes),
        )
        return open_ledger("oracle", pool).path  # type: ignore[arg-type]

    first = ledger("GPU-1", "NVIDIA H200")
    assert ledger("GPU-2", "NVIDIA H200", "h100") == first
    assert ledger("GPU-1", "NVIDIA H100") != first != ledger("GPU-1", "NVIDIA H200", precision=Precision.STRICT)
