"""The rows of a report's tables in Weights & Biases, and what its run sends, read back from what the offline mode writes."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from rlkernel.report.best_kernels import BestKernel
from rlkernel.report.claims import Claim, decide_claims
from rlkernel.report.columns import METRICS as COLUMNS
from rlkernel.report.summary import REQUIRED, RunRecord, read_run, summarise
from rlkernel.report.wandb_report import arm_rows, claim_rows, compared, kernel_rows, log_report
from tests.report import many_turns
from tests.runs import wandb_files


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)


def test_claims_have_a_row_whatever_is_known() -> None:
    def arm(name: str, level: float) -> list[RunRecord]:
        levels = (level, level * 1.01)
        return [RunRecord(Path(), name, s, "measured", {}, ({"step": 5, "reward": own},)) for s, own in enumerate(levels)]

    claims = [Claim("b above a", "b", "a", "reward", "2 points"), Claim("c above a", "c", "a", "reward", "")]
    known, unknown = claim_rows(decide_claims(claims, {"a": arm("a", 1.0), "b": arm("b", 1.5)}))
    # 0.5 and 0.505: half the interval 12.7062 * 0.0025 = 0.0318.
    assert (known["difference"], known["verdict"]) == (pytest.approx(0.5025), "reproduced")
    assert known["low"] == pytest.approx(0.5025 - 0.0318, abs=1e-4)
    assert (unknown["difference"], unknown["low"], unknown["verdict"]) == (None, None, "no finished runs")
    assert known.keys() == unknown.keys()


def measured(arm: str, seed: int, first: float, last: float) -> RunRecord:
    rows = tuple({"step": step, **dict.fromkeys(REQUIRED, value)} for step, value in ((0, first), (5, last)))
    return RunRecord(Path(), arm, seed, "measured", {}, rows)


def test_arms_have_the_means_of_their_first_and_last_values() -> None:
    (row,) = arm_rows(summarise([measured("a", 0, 0.0, 1.0), measured("a", 1, 0.5, 2.0)]))
    assert (row["arm"], row["seeds"], row["steps"]) == ("a", 2, 5)
    assert (row["Reward, first"], row["Reward, last"], row["Lazy, last"]) == (0.25, 1.5, 1.5)
    assert len(row) == 3 + 2 * len(COLUMNS)


def test_arms_that_are_paid_differently_have_no_reward_in_the_tables() -> None:
    runs = [replace(measured(arm, 0, 0.0, 1.0), manifest={"run": {"reward": {"class": arm}}}) for arm in ("a", "b")]
    rows = arm_rows(summarise(runs))
    assert not [key for row in rows for key in row if key.startswith("Reward")]
    assert len(rows[0]) == 3 + 2 * (len(COLUMNS) - 1)


def test_kernels_have_their_code() -> None:
    kernel = BestKernel("p", "train", 3, "x = 1", 2.0, 1.9, 2.1, "measured", 0.8, "aten.mm (75 %)")
    first, second = kernel_rows([kernel, replace(kernel, problem="q")])
    assert (first["problem"], first["code"], first["low"], second["problem"]) == ("p", "x = 1", 1.9, "q")
    assert kernel_rows([]) == []


def test_arms_that_cannot_be_paired_are_no_error() -> None:
    assert compared([measured("a", 0, 0.0, 1.0), measured("b", 0, 0.0, 1.0)]) == []  # neither has outcomes


def test_nothing_is_sent_where_wandb_is_switched_off_or_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [measured("a", 0, 0.0, 1.0)]
    monkeypatch.setenv("WANDB_MODE", "disabled")
    log_report(tmp_path / "out", "n", summarise(runs), (), runs, tmp_path / "none.png")
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    log_report(tmp_path / "out", "n", summarise(runs), (), runs, tmp_path / "none.png")
    assert not (tmp_path / "out").exists()


def test_a_report_sends_the_paired_comparison(tmp_path: Path) -> None:
    runs = []
    for arm, own in (("grpo", {"a": 0.25, "b": 0.5}), ("trloo", {"a": 0.75, "b": 0.5})):
        for seed in (0, 1):
            directory = many_turns.write_run(tmp_path / f"{arm}{seed}", arm, seed, 0)
            numbers = {name: {**dict.fromkeys(REQUIRED, 0.5), "fast_1.2": value + seed / 4} for name, value in own.items()}
            (directory / "outcomes.jsonl").write_text(json.dumps({"split": "validation", "step": 20, "problems": numbers}))
            manifest = json.loads((directory / "manifest.json").read_text())
            (directory / "manifest.json").write_text(json.dumps({**manifest, "wandb_id": f"id-{arm}{seed}"}))
            runs.append(read_run(directory))
    figure = tmp_path / "figure.png"
    Image.new("RGB", (1, 1)).save(figure)
    log_report(tmp_path / "out", "estimators", summarise(runs), (), runs, figure)
    (row,) = wandb_files.history(tmp_path / "out")
    config, about = wandb_files.about(tmp_path / "out")
    assert (about.job_type, list(about.tags)) == ("report", ["estimators", "measured"])
    ids = ["id-grpo0", "id-grpo1", "id-trloo0", "id-trloo1"]
    assert (config["arms"], config["seeds"], config["runs"]) == (["grpo", "trloo"], [0, 1], ids)
    linked = [(found["arm"], found["seed"], found["id"], found["link"]) for found in row["runs"]]
    assert linked == [(run.arm, run.seed, name, None) for run, name in zip(runs, ids, strict=True)], "offline there is no address"
    assert [found["arm"] for found in row["arms"]] == ["grpo", "trloo"]
    found = {line["metric"]: line for line in row["comparison"]}
    assert list(found) == [column.key for column in COLUMNS]
    # Means over seeds 0 and 1, of which the second is 1/4 higher: 0.375 and 0.125 more; trloo gains 0.5 on a alone, in both.
    assert found["fast_1.2"] == {
        "base": "grpo", "other": "trloo", "seeds": "0, 1", "metric": "fast_1.2", "base value": 0.5, "other value": 0.75,
        "difference": 0.25, "low": 0.0, "high": 0.5, "low over seeds": 0.25, "high over seeds": 0.25, "p over problems": 1.0,
        "problems above": 1, "equal": 1, "below": 0,
    }  # fmt: skip
    assert [(line["problem"], line["base value"], line["other value"], line["low over seeds"]) for line in row["problems"]] == [
        ("a", 0.375, 0.875, 0.5),
        ("b", 0.625, 0.625, 0.0),
    ]
    # Arms that cannot be paired are no error.
    log_report(tmp_path / "alone", "one", summarise(runs[:1]), (), runs[:1], figure)
    (row,) = wandb_files.history(tmp_path / "alone")
    assert "comparison" not in row and len(row["arms"]) == 1
