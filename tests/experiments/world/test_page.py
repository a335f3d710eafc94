"""The page about the world, from small files that were made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envs.world.oracles import store
from envs.world.suite import to_row, training_tasks, validation_tasks
from envs.world.teacher import BEGINNER, Variant
from experiments.world.curve import slope
from experiments.world.difficulty import oracle_fraction
from experiments.world.judged import Item, Ledger
from experiments.world.page import main, teacher_level
from rlkernel.report.summary import read_run
from rlkernel.runs.outcomes import KEYS
from rlkernel.types import Evaluation, Status

TASK = training_tasks(["row"])[0]
ROW, CHAIN = TASK.name, validation_tasks(["chain"])[0].name


def write_run(directory: Path, seed: int) -> Path:
    """Fast@1.2 on the first turn rises from 0.1 at step 0 to 0.4 at step 36 and 0.52 + 0.04 * seed at step 48."""
    directory.mkdir(parents=True)
    levels = {0: 0.1, 36: 0.4, 48: 0.52 + 0.04 * seed}
    rows = [{"split": "validation", "step": s, **dict.fromkeys(KEYS, v), "oracle_fraction": v / 2} for s, v in levels.items()]
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    manifest = {"arm": "trloo", "seed": seed, "timing": "modelled", "run": {"reward": None}}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    turns = [
        (ROW, "fast", Evaluation(Status.CORRECT, "", speedup=3.0, coverage=1.0, timing="modelled")),
        (CHAIN, "slow", Evaluation(Status.CORRECT, "", speedup=1.5, coverage=1.0, timing="modelled")),
    ]
    lines = [
        {"split": "train", "step": 48, "problem": name, "turns": [{"code": code, "evaluation": facts.to_json(), "reward": 1.0}]}
        for name, code, facts in turns
    ]
    (directory / "transcripts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return directory


def difficulty() -> dict[str, Any]:
    right = {str(variant): 0.5 for variant in Variant}
    fast = {str(variant): 1.0 if variant is Variant.FUSED else 0.0 for variant in Variant}
    return {
        "timing": "modelled",
        "reference_us": {"least": 22.0, "most": 1600.4},
        "right_by_kind": right,
        "fast_by_kind": fast,
        "oracle_fraction_by_kind": {str(variant): 0.3 for variant in Variant},
        "teacher_best": {CHAIN: 2.0},
    }


def test_the_page_has_every_part_that_there_are_numbers_for(tmp_path: Path) -> None:
    out, policy, table = tmp_path / "out", tmp_path / "policy", tmp_path / "oracles.json"
    words = ["--out", str(out), "--policy", str(policy), "--oracles", str(table), "--corpus", str(tmp_path / "corpus.jsonl")]
    assert main(words) == 0
    empty = (out / "world.md").read_text()
    for command in ("world.difficulty", "world.oracle", "cold_start --world h200", "multi_turn_estimators trloo --preset world"):
        assert f"`python -m experiments.{command}" in empty

    store("NVIDIA H200", "measured", {ROW: {"speedup": 4.0, "points": 100, "correct": 80, "schedule": []}}, table)
    store("NVIDIA H200", "measured", {CHAIN: {"speedup": 2.5, "points": 44, "correct": 44, "schedule": []}}, table)
    policy.mkdir()
    metrics = {"fast_1_turn_1": 0.42, "fast_1.2_turn_1": 0.2, "oracle_fraction": 0.25, "hacking_rate": 0.15}
    (policy / "behaviour.json").write_text(json.dumps({"timing": "measured", "metrics": metrics}))
    (out / "world_difficulty.json").write_text(json.dumps(difficulty()))
    facts = {"status": "correct", "speedup": 2.0, "coverage": 1.0, "timing": "modelled"}
    conversation = {
        "task": to_row(TASK),
        "number": 0,
        "prompt": "",
        "exchanges": [["", "", facts], ["", "", {**facts, "timing": "measured"}]],
    }
    (tmp_path / "corpus.jsonl").write_text(json.dumps(conversation) + "\n")
    runs = [str(write_run(tmp_path / "runs" / f"trloo-seed{seed}", seed)) for seed in range(2)]
    assert main([*runs, *words]) == 0

    page = (out / "world.md").read_text()
    assert "2 of 2 problems have headroom on one NVIDIA H200 (measured): the best kernels" in page
    assert "3.25x as fast as the references in the median, 2.50x to 4.00x." in page
    assert "| `row` | 1 | 4.00x | 4.00x | 4.00x | 100 | 80 % |" in page and "| `chain` | 1 | 2.50x" in page
    assert "References take 22 to 1600 us (modelled)" in page and "| `fused` | 10 % | 50 % | 100 % |" in page
    assert "| Fast@1 on the first turn | 42 % | 35 to 60 % |" in page
    # Of (0.12 / 12) and (0.16 / 12) per step.
    assert "| `trloo` | 2 | 48 | 10 % → 54 % | 5 % → 27 % | +1.17 points per step |" in page
    assert "The teacher's own first drafts: 10 % Fast@1.2, 30 % of the oracle." in page
    # 3.0 against 2.0 of the corpus, and 1.5 against 2.0 of the teacher's drafts.
    assert "on 1 of 2 problems its best kernel is faster" in page
    assert f"### {ROW}: 3.00x (modelled), the teacher's best 2.00x" in page and "slow" not in page
    assert (out / "world_learning.png").read_bytes().startswith(b"\x89PNG")


def test_a_slope_is_over_the_last_quarter_or_the_last_two_measurements(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "a", 1))
    assert slope(run, "fast_1.2_turn_1") == pytest.approx(0.16 / 12)
    path = tmp_path / "a" / "metrics.jsonl"
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if '"step": 36' not in line))
    assert slope(read_run(tmp_path / "a"), "fast_1.2_turn_1") == pytest.approx((0.56 - 0.1) / 48)
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    assert slope(read_run(tmp_path / "a"), "fast_1.2_turn_1") == 0.0


def test_the_teachers_level_is_weighted_by_its_shares() -> None:
    assert teacher_level(difficulty()) == pytest.approx(
        {"fast_1.2_turn_1": BEGINNER.first[Variant.FUSED], "oracle_fraction": 0.3}
    )
    assert teacher_level(None) == {}


def test_the_oracle_fraction_of_drafts_by_hand(tmp_path: Path) -> None:
    """log 2 / log 4 is a half; what is slower or wrong counts 0, and a problem without an oracle does not count."""
    from experiments.world.check import honest_draft

    drafts = [honest_draft(k) for k in range(2)]
    known, unknown = (draft.task.name for draft in drafts)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    items = [Item(str(k), drafts[k == 3]) for k in range(4)]
    for item, speed in zip(items, (2.0, 0.5, None, 9.0), strict=True):
        ledger.add(item.key, Evaluation(Status.CORRECT if speed else Status.INCORRECT, "", speedup=speed))
    assert known != unknown
    assert oracle_fraction(items, {known: 1.3862943611198906}, ledger) == pytest.approx(1 / 6)
