"""Numbers of a comparison, from small run directories written by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlkernel.errors import UsageError
from rlkernel.report.columns import METRICS
from rlkernel.report.summary import (
    Window,
    columns_of,
    compare_seeds,
    from_one_policy,
    per_problem,
    read_run,
    spread,
    summarise,
    value,
)


def row(step: int, reward: float, fast: float = 0.5, split: str = "validation") -> dict[str, Any]:
    speed = {"fast_1": fast, "fast_1.2": fast / 2, "fast_1_turn_1": fast, "fast_1.2_turn_1": fast / 2}
    return {"step": step, "split": split, "reward": reward, **speed, "hacking_rate": 0.1, "lazy_rate": 0.2}


def write_run(directory: Path, arm: str, seed: int, rows: list[dict[str, Any]], timing: str | None = "modelled") -> Path:
    directory.mkdir()
    manifest = {"arm": arm, "seed": seed, "timing": timing, "run": {"class": "Run", "name": arm, "seed": seed}}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    (directory / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rows))
    return directory


def test_spread_is_the_mean_and_half_the_range() -> None:
    found = spread([1.0, 2.0, 4.5])
    assert (found.mean, found.half_range, found.seeds) == (2.5, 1.75, 3)


def test_differences_are_taken_seed_by_seed(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a0", "grpo", 0, [row(0, 0.2), row(10, 0.6)]),
        write_run(tmp_path / "a1", "grpo", 1, [row(0, 0.4), row(10, 1.0)]),
        write_run(tmp_path / "b0", "trloo", 0, [row(0, 0.2), row(10, 0.9)]),
        write_run(tmp_path / "b1", "trloo", 1, [row(0, 0.4), row(10, 1.1)]),
    ]
    grpo, trloo = summarise([read_run(run) for run in runs])
    assert grpo.difference is None
    assert grpo.first["reward"].mean == pytest.approx(0.3)
    assert grpo.last["reward"].mean == pytest.approx(0.8)
    assert grpo.last["reward"].half_range == pytest.approx(0.2)
    assert trloo.difference is not None
    # Seed 0: 0.9 - 0.6 = 0.3; seed 1: 1.1 - 1.0 = 0.1. Mean 0.2, half the interval 12.7062 * 0.1414 / sqrt(2) = 1.2706.
    found = trloo.difference["reward"]
    assert (found.mean, found.seeds, found.problems, found.p) == (pytest.approx(0.2), 2, None, None)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (pytest.approx(-1.0706, abs=1e-4), pytest.approx(1.4706, abs=1e-4))
    assert METRICS[0].show_difference(found) == "+0.20 [-1.07, +1.47]"


def test_an_arm_without_a_common_seed_has_no_difference(tmp_path: Path) -> None:
    runs = [
        read_run(write_run(tmp_path / "a", "grpo", 0, [row(0, 0.2)])),
        read_run(write_run(tmp_path / "b", "trloo", 1, [row(0, 0.2)])),
    ]
    assert summarise(runs)[1].difference is None


def test_steps_are_the_least_of_the_seeds(tmp_path: Path) -> None:
    runs = [
        read_run(write_run(tmp_path / "a", "grpo", 0, [row(0, 0.2), row(5, 0.3), row(10, 0.4)])),
        read_run(write_run(tmp_path / "b", "grpo", 1, [row(0, 0.2), row(5, 0.3)])),
    ]
    assert summarise(runs)[0].steps == 5


def test_only_validation_rows_count_in_order_of_steps_and_a_repeated_step_replaces(tmp_path: Path) -> None:
    rows = [row(5, 0.5), row(0, 0.1), row(3, 9.0, split="train"), row(5, 0.6)]
    found = read_run(write_run(tmp_path / "a", "grpo", 0, rows))
    assert [(line["step"], line["reward"]) for line in found.validation] == [(0, 0.1), (5, 0.6)]


def test_modelled_and_measured_times_are_not_compared(tmp_path: Path) -> None:
    runs = [
        read_run(write_run(tmp_path / "a", "grpo", 0, [row(0, 0.2)])),
        read_run(write_run(tmp_path / "b", "trloo", 0, [row(0, 0.2)], timing="measured")),
    ]
    with pytest.raises(UsageError, match="measured and modelled"):
        summarise(runs)


def test_values_are_shown_with_their_spread() -> None:
    reward, fast = METRICS[0], METRICS[1]
    assert spread([0.5, 0.7]).show(reward) == "0.60 ± 0.10"
    assert spread([0.5, 0.7]).show(fast) == "60 ± 10 %"
    assert spread([0.5]).show(fast) == "50 %"
    assert spread([-0.03, -0.05]).show(fast, signed=True) == "-4 ± 1 %"


def test_a_directory_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"manifest\.json: there is no such file"):
        read_run(tmp_path)


def test_a_row_without_a_metric_is_named(tmp_path: Path) -> None:
    short = {key: value for key, value in row(4, 0.5).items() if key != "lazy_rate"}
    with pytest.raises(UsageError, match="step 4 lacks 'lazy_rate'"):
        read_run(write_run(tmp_path / "a", "grpo", 0, [short]))


def test_a_torn_line_is_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "grpo", 0, [row(0, 0.2)])
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 5, "spl')
    with pytest.raises(UsageError, match="line 2: not JSON"):
        read_run(run)


def outcomes(directory: Path, rows: dict[int, dict[str, float]]) -> None:
    """rows: step -> problem -> reward. The last line is cut off, as by a kill."""
    lines = [
        {"split": "validation", "step": step, "problems": {name: {"reward": r, "apparent_fast_1": r} for name, r in row.items()}}
        for step, row in rows.items()
    ]
    (directory / "outcomes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"split": "va')


def test_outcomes_that_lack_a_measurement_are_refused_and_not_told_as_those_of_another_step(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "grpo", 0, [row(0, 0.0), row(10, 0.25)])
    outcomes(run, {0: {"a": 0.0}})  # copied in part: the last row is cut off
    with pytest.raises(UsageError, match=r"outcomes\.jsonl: no row of step 10, which metrics\.jsonl has; the run's own command"):
        read_run(run)
    # The other way round is a run that was killed between the two, or that is being measured now.
    outcomes(run, {step: {"a": 0.0} for step in (0, 10, 20)})
    assert [line["step"] for line in read_run(run).validation] == [0, 10]


def test_arms_are_paired_by_problem_where_outcomes_were_recorded(tmp_path: Path) -> None:
    records = []
    for arm, gain in (("grpo", 0.0), ("trloo", 0.5)):
        for seed in (0, 1):
            run = write_run(tmp_path / f"{arm}{seed}", arm, seed, [row(0, 0.0), row(10, 0.25 + gain)])
            outcomes(run, {0: {"a": 0.0, "b": 0.0, "c": 0.0}, 10: {"a": 0.25 + gain, "b": 0.5 + gain, "c": gain}})
            records.append(read_run(run))
    found = compare_seeds(records[2:], records[:2], "reward", Window(last=1))
    assert found is not None
    # All three problems are better by 0.5: of 8 flips, two are as extreme.
    assert (found.mean, found.problems, found.p) == (0.5, 3, 0.25)
    assert per_problem(records[0], "reward", Window(last=1)) == {"a": 0.25, "b": 0.5, "c": 0.0}
    # What outcomes alone know joins the rows of metrics: (0.25 + 0.5 + 0) / 3.
    assert records[0].validation[-1]["apparent_fast_1"] == 0.25
    # Outcomes do not have every metric.
    assert compare_seeds(records[2:], records[:2], "turns", Window(last=1)) is None


def test_values_are_means_over_a_window(tmp_path: Path) -> None:
    rows = [row(step, reward) for step, reward in ((0, 0.0), (5, 1.0), (10, 2.0), (15, 4.0), (20, 6.0))]
    train = [{"step": step, "split": "train", "grad_norm": float(step), "mismatch": None} for step in (1, 2, 3, 4)]
    run = read_run(write_run(tmp_path / "a", "grpo", 0, [*rows, *train]))
    assert value(run, "reward", Window(last=1)) == 6.0
    assert value(run, "reward", Window(share=0.5)) == 5.0
    assert value(run, "reward", Window(share=1.0)) == 13 / 4  # without the one before training
    assert value(run, "reward", Window(step=10)) == 2.0
    assert value(run, "reward", Window(step=11)) is None
    assert value(run, "train/grad_norm", Window(share=0.5)) == 3.5
    assert value(run, "train/mismatch", Window(share=0.5)) is None


@pytest.mark.parametrize(
    ("mine", "its", "one"),
    [
        (("p", "card a"), ("p", "card b"), True),
        (("p", "card a"), ("q", "card a"), False),
        (("p", "card a"), (None, "card a"), True),
        (("p", "card a"), (None, "card b"), False),
        (("p", "card a"), (None, None), False),  # an old run, which tells nothing
        (("p", None), (None, None), False),
        ((None, None), (None, None), True),  # `small` without a GPU
        ((None, "card a"), (None, "card b"), True),  # of one piece of work: `--add` takes no others
    ],
)
def test_runs_of_equal_seed_are_compared_where_they_began_from_one_policy(
    mine: tuple[str | None, str | None], its: tuple[str | None, str | None], one: bool, tmp_path: Path
) -> None:
    records = []
    for arm, reward, (policy, card) in (("grpo", 0.2, mine), ("trloo", 0.5, its)):
        record = read_run(write_run(tmp_path / arm, arm, 0, [row(0, 0.0), row(5, reward)]))
        facts = {"policy": policy, "machine": {"cards": [card] if card else []}}
        records.append(replace(record, manifest={**record.manifest, **facts}))
    assert from_one_policy(*records) is from_one_policy(*reversed(records)) is one
    found = compare_seeds(records[1:], records[:1], "reward", Window(last=1))
    assert (found.mean if found else None) == (pytest.approx(0.3) if one else None)


def test_rewards_of_arms_that_are_paid_differently_are_not_compared(tmp_path: Path) -> None:
    runs = []
    for arm, cap in (("trloo", 3.0), ("grpo", 3.0), ("capped", 1.0)):
        directory = write_run(tmp_path / arm, arm, 0, [row(0, 0.2), row(5, 0.4)])
        manifest = json.loads((directory / "manifest.json").read_text())
        manifest["run"]["reward"] = {"class": "SpeedReward", "cap": cap}
        (directory / "manifest.json").write_text(json.dumps(manifest))
        runs.append(read_run(directory))
    trloo, grpo, capped = ([run] for run in runs)
    assert compare_seeds(trloo, grpo, "reward", Window(last=1)) is not None
    assert compare_seeds(trloo, capped, "reward", Window(last=1)) is None
    assert compare_seeds(trloo, capped, "fast_1", Window(last=1)) is not None
    assert [metric.key for metric in columns_of(summarise(runs[:2]))] == [metric.key for metric in METRICS]
    arms = summarise(runs)
    assert [metric.key for metric in columns_of(arms)] == [metric.key for metric in METRICS if metric.key != "reward"]
    assert arms[2].difference is not None and "reward" not in arms[2].difference


def test_the_fraction_of_the_oracle_is_a_column_where_every_run_has_it(tmp_path: Path) -> None:
    known = [{**row(0, 0.2), "oracle_fraction": 0.25}, {**row(10, 0.6), "oracle_fraction": 0.5}]
    runs = [write_run(tmp_path / "a", "grpo", 0, known), write_run(tmp_path / "b", "trloo", 0, known)]
    arms = summarise([read_run(run) for run in runs])
    assert [metric.key for metric in columns_of(arms)][-1] == "oracle_fraction"
    assert (arms[0].first["oracle_fraction"].mean, arms[1].last["oracle_fraction"].mean) == (0.25, 0.5)
    lacking = write_run(tmp_path / "c", "rloo", 0, [row(0, 0.2), row(10, 0.6)])
    assert columns_of(summarise([read_run(run) for run in (*runs, lacking)])) == METRICS
