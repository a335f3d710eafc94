"""Comparisons of runs problem by problem: golden numbers, who is paired with whom, and one line for what cannot be compared."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rlkernel.commands.cli import main
from rlkernel.errors import UsageError
from rlkernel.report.compare import Pair, compare_arms, find_runs
from rlkernel.report.compare_report import heading, to_json
from rlkernel.report.power import arms_of, noise
from rlkernel.report.report import Story, write_report
from rlkernel.report.summary import REQUIRED, Window, read_run
from rlkernel.report.wandb_report import compared

LAST = Window(last=1)
Outcomes = Mapping[str, float]
"""Problem -> Fast@1.2 of the last validation."""


def write_run(directory: Path, arm: str, seed: int, fast: Outcomes | None, timing: str = "modelled", **fields: Any) -> Path:
    """A run measured at steps 0, where every number is 0, and 10, where Fast@1.2 is as given and all other numbers are 0.5."""
    directory.mkdir(parents=True)
    run = {"class": "Run", "name": arm, "seed": seed, "steps": 10, **fields}
    (directory / "manifest.json").write_text(
        json.dumps({"arm": arm, "seed": seed, "timing": timing, "run": run, "finished": "today"})
    )
    rows = [{"split": "validation", "step": step, **dict.fromkeys(REQUIRED, 0.5)} for step in (0, 10)]
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if fast is not None:
        numbers = {name: {**dict.fromkeys(REQUIRED, 0.5), "correct_rate": 0.5, "fast_1.2": value} for name, value in fast.items()}
        nothing = {name: {**dict.fromkeys(REQUIRED, 0.0), "correct_rate": 0.0} for name in fast}
        lines = [
            {"split": "validation", "step": 0, "problems": nothing},
            {"split": "validation", "step": 10, "problems": numbers},
        ]
        (directory / "outcomes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return directory


def fast(pair: Pair) -> Any:
    return next(row for row in pair.metrics if row.metric.key == "fast_1.2")


def test_common_seeds_are_paired_and_others_left_out(tmp_path: Path) -> None:
    # Seed by seed and problem by problem: seed 0: +0.5, 0, +0.25; seed 1: +0.25, 0, -0.25. Seed 2 has no partner.
    runs = [
        write_run(tmp_path / "g0", "grpo", 0, {"a": 0.25, "b": 0.5, "c": 0.5}),
        write_run(tmp_path / "g1", "grpo", 1, {"a": 0.25, "b": 0.5, "c": 0.5}),
        write_run(tmp_path / "t0", "trloo", 0, {"a": 0.75, "b": 0.5, "c": 0.75}),
        write_run(tmp_path / "t1", "trloo", 1, {"a": 0.5, "b": 0.5, "c": 0.25}),
        write_run(tmp_path / "t2", "trloo", 2, {"a": 1.0, "b": 1.0, "c": 1.0}),
    ]
    (pair,), timing = compare_arms(runs, "fast_1.2", LAST)
    row = fast(pair)
    assert (pair.base.label, pair.other.label, pair.seeds, timing) == ("grpo", "trloo", (0, 1), "modelled")
    # Means over seeds: +0.25, 0 of the seeds; +0.375, 0, 0 of the problems; 0.125 of all.
    assert row.difference.mean == pytest.approx(0.125)
    assert (row.higher, row.equal, row.lower) == (1, 2, 0)
    # Student over 0.25 and 0: half = 12.7062 * 0.176777 / sqrt(2) = 1.588275, which no share can differ by: cut at 1.
    assert (row.difference.interval.low, row.difference.interval.high) == (-1.0, 1.0)
    reward = next(row for row in pair.metrics if row.metric.key == "reward")
    assert reward.difference.interval.low == pytest.approx(0.0)
    assert row.difference.p == 1.0  # one problem differs: both of its signs are as extreme
    a, b, c = pair.problems
    assert [r.problem for r in (a, b, c)] == ["a", "b", "c"]
    assert (a.base, a.other, a.difference) == (0.25, 0.625, 0.375)
    # Student over +0.5 and +0.25: the same half, cut
    assert a.interval is not None and (a.interval.low, a.interval.high) == (-1.0, 1.0)
    assert "seed 2 of trloo is left out" in heading(pair, timing)[1]


def test_without_a_common_seed_problems_alone_are_paired(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "g0", "grpo", 0, {"a": 0.0, "b": 0.5, "c": 0.0}),
        write_run(tmp_path / "t3", "trloo", 3, {"a": 0.5, "b": 0.5, "c": 1.0}),
        write_run(tmp_path / "t4", "trloo", 4, {"a": 1.0, "b": 1.0, "c": 1.0}),
    ]
    (pair,), _ = compare_arms(runs, "fast_1.2", LAST)
    # Means of seeds 3 and 4 minus seed 0: 0.75, 0.25, 1.
    assert [row.difference for row in pair.problems] == [1.0, 0.75, 0.25]
    assert fast(pair).difference.mean == pytest.approx(2 / 3)
    assert fast(pair).difference.p == 0.25  # 2 of 8 sign flips: all plus, all minus
    assert fast(pair).difference.interval is None and pair.seeds == ()
    assert all(row.interval is None for row in pair.problems)
    assert "no common seed (3, 4 and 0): paired by problem alone" in heading(pair, "modelled")[1]


def began_from(directory: Path, policy: str) -> Path:
    """The same run, with the policy that it says that it began from."""
    manifest = json.loads((directory / "manifest.json").read_text())
    (directory / "manifest.json").write_text(json.dumps({**manifest, "policy": policy}))
    return directory


def test_runs_of_equal_seed_from_different_policies_are_not_paired(tmp_path: Path) -> None:
    base = [began_from(write_run(tmp_path / f"g{seed}", "grpo", seed, {"a": 0.25, "b": 0.5}), "p") for seed in (0, 1)]
    same = [began_from(write_run(tmp_path / f"t{seed}", "trloo", seed, {"a": 0.75, "b": 0.5}), "p") for seed in (0, 1)]
    other = [began_from(write_run(tmp_path / f"m{seed}", "mrs", seed, {"a": 0.75, "b": 0.5}), "q") for seed in (0, 1)]
    pairs, timing = compare_arms([*base, *same, *other], "fast_1.2", LAST)
    assert [pair.seeds for pair in pairs] == [(0, 1), ()]
    assert [fast(pair).difference.interval is None for pair in pairs] == [False, True]
    notice = "notice: runs of seed 0, 1 began from different policies, and are not paired by seed"
    assert [heading(pair, timing)[2:] for pair in pairs] == [[], [notice]]
    assert [pair["seeds_of_other_policies"] for pair in to_json(pairs, timing, "fast_1.2")["pairs"]] == [[], [0, 1]]
    records = [read_run(run) for run in (*base, *same, *other)]
    assert [pair.other.label for pair in compared(records)] == ["trloo"]


def test_an_arm_that_began_from_two_policies_is_two_arms(tmp_path: Path) -> None:
    runs = [began_from(write_run(tmp_path / name, "grpo", 0, {"a": 0.5}), name) for name in ("p", "q")]
    (pair,), _ = compare_arms(runs, "fast_1.2", LAST)
    assert (pair.base.label, pair.other.label, pair.seeds) == (str(runs[0]), str(runs[1]), ())
    assert noise(arms_of([read_run(run) for run in runs]), "fast_1.2", LAST).twins is None


def test_only_common_problems_count(tmp_path: Path) -> None:
    one = write_run(tmp_path / "g", "grpo", 0, {"a": 0.0, "b": 1.0})
    two = write_run(tmp_path / "t", "trloo", 0, {"a": 1.0, "c": 0.0, "d": 0.0})
    (pair,), _ = compare_arms([one, two], "fast_1.2", LAST)
    assert [row.problem for row in pair.problems] == ["a"] and pair.left_out == 3
    assert fast(pair).difference.mean == 1.0
    assert "1 problems, 3 that only one has left out" in heading(pair, "modelled")[1]


def test_runs_of_different_sizes_are_compared_with_a_notice(tmp_path: Path) -> None:
    base = write_run(tmp_path / "g0", "grpo", 0, {"a": 0.5}, rollouts=4)
    same = write_run(tmp_path / "t0", "trloo", 0, {"a": 0.5}, rollouts=4)
    larger = write_run(tmp_path / "m0", "mrs", 0, {"a": 0.5}, rollouts=8, learning_rate=1.0)
    larger_steps = json.loads((larger / "manifest.json").read_text())
    larger_steps["run"]["steps"] = 40
    (larger / "manifest.json").write_text(json.dumps(larger_steps))
    first, second = compare_arms([base, same, larger], "fast_1.2", LAST)[0]
    assert len(heading(first, "modelled")) == 2
    assert heading(second, "modelled")[2] == "notice: these runs differ in size: steps 40 against 10; rollouts 8 against 4"


def test_a_run_that_has_stopped_on_its_way_is_named(tmp_path: Path) -> None:
    whole = [write_run(tmp_path / f"g{seed}", "grpo", seed, {"a": 0.5}) for seed in (0, 1)]
    ended = [write_run(tmp_path / f"t{seed}", "trloo", seed, {"a": 0.5}) for seed in (0, 1)]
    manifest = json.loads((ended[1] / "manifest.json").read_text())
    (ended[1] / "manifest.json").write_text(json.dumps({key: value for key, value in manifest.items() if key != "finished"}))
    for file in ("outcomes.jsonl", "metrics.jsonl"):
        rows = ended[1] / file
        rows.write_text(rows.read_text().splitlines()[0] + "\n")  # step 0 of 10
    pairs, timing = compare_arms([*whole, *ended], "fast_1.2", LAST)
    line = "trloo, seed 1: last measured at step 0 of 10"
    assert heading(pairs[0], timing)[2:] == [f"notice: not finished, so no result: {line}"]
    assert to_json(pairs, timing, "fast_1.2")["pairs"][0]["unfinished"] == [line]
    assert heading(compare_arms([whole[0], ended[0]], "fast_1.2", LAST)[0][0], timing)[2:] == []


def test_rewards_of_arms_that_are_paid_differently_are_not_compared(tmp_path: Path) -> None:
    speed, bonus = {"class": "SpeedReward", "cap": 3.0}, {"class": "SpeedReward", "cap": 1.0}
    base = write_run(tmp_path / "g0", "trloo", 0, {"a": 0.5}, reward=speed)
    alike = write_run(tmp_path / "t0", "grpo", 0, {"a": 0.5}, reward=speed)
    other = write_run(tmp_path / "c0", "capped", 0, {"a": 0.5}, reward=bonus)
    same, different = compare_arms([base, alike, other], "fast_1.2", LAST)[0]
    assert [row.metric.key for row in same.metrics] == ["reward", *(row.metric.key for row in different.metrics)]
    assert "reward" not in [row.metric.key for row in different.metrics]
    assert heading(same, "modelled")[2:] == []
    assert heading(different, "modelled")[2:] == ["notice: these arms are paid by different rewards, which are not compared"]
    with pytest.raises(UsageError, match="--metric reward: trloo and capped are paid by different rewards"):
        compare_arms([base, other], "reward", LAST)


def test_windows(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / arm, arm, 0, {"a": value}) for arm, value in (("grpo", 0.25), ("trloo", 1.0))]
    assert fast(compare_arms(runs, "fast_1.2", Window(step=0))[0][0]).difference.mean == 0.0
    assert fast(compare_arms(runs, "fast_1.2", Window(share=0.5))[0][0]).difference.mean == 0.75


def test_runs_of_one_arm_that_differ_in_more_than_the_seed_are_arms_of_their_own(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "short", "grpo", 0, {"a": 0.0}, rollouts=4),
        write_run(tmp_path / "wide", "grpo", 0, {"a": 1.0}, rollouts=8),
        write_run(tmp_path / "wide1", "grpo", 1, {"a": 1.0}, rollouts=8),
        write_run(tmp_path / "again", "grpo", 0, {"a": 0.5}, rollouts=4),
    ]
    pairs, _ = compare_arms(runs, "fast_1.2", LAST)
    assert [pair.other.label for pair in pairs] == [str(tmp_path / "wide"), str(tmp_path / "again")]
    assert pairs[0].base.label == str(tmp_path / "short")
    assert sorted(pairs[0].other.runs) == [0, 1]


def test_a_run_that_a_wrong_flag_ended_is_left_out_with_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arm, value in (("grpo", 0.25), ("trloo", 1.0)):
        write_run(tmp_path / arm, arm, 0, {"a": value})
    ended = write_run(tmp_path / "ended", "grpo", 0, {"a": 0.0})
    (ended / "metrics.jsonl").unlink()
    (pair,), _ = compare_arms([tmp_path], "fast_1.2", LAST)
    assert fast(pair).difference.mean == 0.75
    assert capsys.readouterr().err == f"left out, nothing measured yet: {ended}\n"
    with pytest.raises(UsageError, match="there is no such file"):
        compare_arms([ended], "fast_1.2", LAST)


def test_runs_are_found_in_reports_and_folders_and_none_twice(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "arms" / f"{arm}-seed0", arm, 0, {"a": 0.5}) for arm in ("trloo", "grpo")]
    for run in runs:
        (run / "transcripts.jsonl").write_text("")
    report = write_report(tmp_path / "study", Story("t", "d"), runs).parent
    assert [run.resolve() for run in find_runs([report])] == runs  # the report's order, hence its baseline
    assert find_runs([tmp_path / "arms"]) == sorted(runs)
    assert find_runs([runs[0], report, tmp_path / "arms"])[0] == runs[0]
    assert len(find_runs([runs[0], report, tmp_path / "arms"])) == 2


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["nowhere", "g"], "{0}/nowhere: no such directory: give run directories or report folders"),
        (["empty", "g"], "{0}/empty: neither a run (manifest.json) nor a report (runs.json) nor a folder of runs: give run "),
        (["g"], "only grpo to compare: give runs of at least two arms"),
        (["g", "g"], "only grpo to compare: give runs of at least two arms"),
        (["g", "other"], "grpo and trloo share no validation problem: compare runs over the same problems"),
        (["g", "old"], "{0}/old/outcomes.jsonl: no outcomes of a validation, which runs are paired by: train it again"),
        (["g", "measured"], "the runs mix measured and modelled times; report them apart"),
        (["g", "t", "--metric", "speed"], "--metric speed: choose from reward, fast_1, fast_1.2, "),
        (["g", "t", "--step", "5"], "{0}/g: no measurement at step 5; it has 0, 10"),
        (["g", "begun", "--late"], "{0}/begun: no measurement after the first half; it has 0"),
        (["g", "t", "--step", "5", "--late"], "--step and --late exclude each other: leave one out"),
        (["g", "t", "--problems", "-1"], "--problems -1: use 0 for none, or a positive number"),
        (["lost"], "{0}/lost/runs.json names {0}/lost/../gone, which is no run: make the report again"),
        ([], "nothing to compare: give run directories or report folders of at least two arms"),
    ],
)
def test_one_line_for_what_cannot_be_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], names: list[str], line: str
) -> None:
    write_run(tmp_path / "g", "grpo", 0, {"a": 0.5})
    write_run(tmp_path / "t", "trloo", 0, {"a": 0.5})
    write_run(tmp_path / "other", "trloo", 0, {"z": 0.5})
    write_run(tmp_path / "old", "trloo", 0, None)
    write_run(tmp_path / "measured", "trloo", 0, {"a": 0.5}, timing="measured")
    begun = write_run(tmp_path / "begun", "trloo", 0, {"a": 0.5})
    for file in ("outcomes.jsonl", "metrics.jsonl"):
        (begun / file).write_text((begun / file).read_text().splitlines()[0] + "\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "runs.json").write_text('["../gone"]')
    cut = next((i for i, name in enumerate(names) if name.startswith("-")), len(names))
    paths = [str(tmp_path / name) for name in names[:cut]]
    figure = tmp_path / "compare.png"
    assert main(["compare", *paths, *names[cut:], "--figure", str(figure)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {line.format(tmp_path)}") and err.count("\n") == 1
    assert not figure.exists()


def test_the_command_prints_tables_or_json_and_writes_the_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [write_run(tmp_path / arm, arm, 0, {"a": value, "b": 0.5}) for arm, value in (("grpo", 0.25), ("trloo", 1.0))]
    figure = tmp_path / "figures" / "compare.png"
    arguments = ["compare", *map(str, runs), "--figure", str(figure)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["trloo - grpo", "seed 0; step 10; 2 problems; modelled time"]
    # Differences 0.75 and 0: 0.375 in the mean; resampled problems are both a (a quarter), both b (a quarter), or one each.
    assert any(
        line.split() == ["Fast@1.2", "38", "%", "75", "%", "+38", "%", "[0,", "+75]", "-", "-", "1", "1", "0"] for line in printed
    )
    data = figure.read_bytes()
    assert data.startswith(b"\x89PNG") and struct.unpack(">II", data[16:24]) == (1500, 825)
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pairs"][0]["problems"]["a"] == {"base": 0.25, "other": 1.0, "difference": 0.75, "over_seeds": None}
    assert found["pairs"][0]["metrics"]["fast_1.2"]["higher_equal_lower"] == [1, 1, 0]


def test_the_figure_goes_beside_the_runs_and_never_into_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [write_run(tmp_path / "arms" / arm, arm, 0, {"a": 0.5}) for arm in ("grpo", "trloo")]
    for run in runs:
        (run / "transcripts.jsonl").touch()
    write_report(tmp_path / "report", Story("title", "text"), runs)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for given, place in (([str(runs[0]), str(runs[1])], "arms"), ([str(tmp_path / "arms")], "arms"), (["../report"], "report")):
        assert main(["compare", *given]) == 0
        figure = Path(capsys.readouterr().out.splitlines()[-1].removeprefix("figure: "))
        assert figure.resolve() == tmp_path / place / "compare.png" and figure.is_file()
        every = [given[0], *sorted(map(str, figure.parent.iterdir()))] if place == "arms" else given  # as `arms/*` has it
        assert main(["compare", *every]) == 0 and capsys.readouterr().out.endswith("compare.png\n")
        figure.unlink()
    assert not list(Path.cwd().iterdir())
    assert main(["compare", str(tmp_path / "arms"), "--figure", str(runs[0] / "manifest.json" / "x.png")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: --figure ") and "cannot be written (File exists)" in said and said.count("\n") == 1


def test_a_manifest_that_is_no_json_is_told_with_what_to_do(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "a", "a", 0, None)
    (directory / "manifest.json").write_text("junk")
    with pytest.raises(UsageError, match=rf"manifest.json: not JSON \(.*\): delete the directory {directory} to start over$"):
        read_run(directory)
