"""Which kernels of a run are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rlkernel.report.best_kernels import best_kernels, best_run
from rlkernel.report.summary import RunRecord
from rlkernel.types import Evaluation, OpFact, Status


def turn(code: str, speedup: float, low: float, status: Status = Status.CORRECT) -> dict[str, Any]:
    facts = Evaluation(
        status, "", speedup=speedup, speedup_low=low, speedup_high=2 * speedup - low, timing="measured", coverage=0.8,
        reference_ops=(OpFact("aten.mm", 1, 9.0, 0.75), OpFact("aten.add", 1, 3.0, 0.25)),
    )  # fmt: skip
    return {"code": code, "evaluation": facts.to_json()}


def record(directory: Path, *rows: tuple[str, list[dict[str, Any]]], fast: float = 0.5) -> RunRecord:
    lines = [{"problem": name, "split": "train", "step": i, "turns": turns} for i, (name, turns) in enumerate(rows)]
    directory.mkdir(exist_ok=True)
    (directory / "transcripts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    validation = ({"step": 0, "fast_1.2": 1.0}, {"step": 10, "fast_1.2": fast})
    return RunRecord(directory, "a", 0, "measured", {}, validation)


def test_one_kernel_per_problem_by_the_lower_bound(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        ("p", [turn("wide", 3.0, 1.0), turn("sure", 2.0, 1.9)]),
        ("q", [turn("hack", 9.0, 9.0, Status.NO_KERNEL), turn("slow", 1.1, 1.05)]),
        ("p", [turn("later", 2.0, 1.8)]),
    )
    best = best_kernels(run)
    assert [(kernel.problem, kernel.code, kernel.step) for kernel in best] == [("p", "sure", 0), ("q", "slow", 1)]
    assert best[0].speedup_text() == "2.00x [1.90, 2.10] (measured)"
    assert best[0].bottleneck == "aten.mm (75 %)"
    assert [kernel.code for kernel in best_kernels(run, limit=1)] == ["sure"]


def test_the_best_run_is_the_one_that_ends_fastest(tmp_path: Path) -> None:
    runs = [record(tmp_path / str(fast), fast=fast) for fast in (0.2, 0.7, 0.4)]
    assert best_run(runs) is runs[1]
    assert best_run([]) is None and best_kernels(None) == ()
