"""Runs of a later piece stand beside those of which only the numbers are left."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import arms
from experiments.checked_in import read
from experiments.results.command import main
from rlkernel.config import Run
from rlkernel.runs import directory as rundir
from tests.experiments.results.test_results import write

NAME = "multi_turn_estimators"


def piece(runs: Path, seeds: tuple[int, ...], card: str, policy: str | None = None, timing: str = "measured") -> Path:
    """Runs of two arms with these seeds, on a card, from a policy. TRLOO is above by 0.30 and a little more with each seed."""
    for seed in seeds:
        for run, level in ((arms.GRPO_ARM, 0.3), (arms.TRLOO_ARM, 0.6 + 0.004 * seed)):
            made(runs, replace(run, seed=seed), level, card, policy, timing)
    return runs


def made(runs: Path, run: Run, level: float, card: str, policy: str | None, timing: str = "measured") -> None:
    directory = write(runs / "arms" / f"{run.name}-seed{run.seed}-a", run, level, timing)
    manifest = json.loads((directory / "manifest.json").read_text())
    machine = {**manifest["machine"], "gpus": ["NVIDIA H200"], "cards": [card]}
    rundir.update_manifest(directory, machine=machine, policy=policy)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Pages of seeds 0 and 1, whose runs are gone."""
    runs = piece(tmp_path / "first", (0, 1), "card a", "policy a")
    assert main(["--runs", str(runs), "--out", str(tmp_path / "out")]) == 0
    shutil.rmtree(runs)
    return tmp_path / "out"


def test_seeds_of_a_later_piece_are_judged_with_the_first_ones(tmp_path: Path, kept: Path) -> None:
    before = json.loads((kept / NAME / "numbers.json").read_text())
    later = piece(tmp_path / "later", (2, 3), "card b", "policy b")
    assert main(["--runs", str(later), "--out", str(kept), "--add"]) == 0
    both = read(kept / NAME)
    assert [(run.arm, run.seed) for run in both.runs] == [(arm, seed) for arm in ("grpo", "trloo") for seed in range(4)]
    after = json.loads((kept / NAME / "numbers.json").read_text())["runs"]
    assert [run for run in after if run["seed"] < 2] == before["runs"]
    assert {one["run"]["problems"]["count"] for one in json.loads((kept / NAME / "manifests.json").read_text())} == {52}
    # Two coverages of each of six problems of a run, of which one is below 0.3: 6 of a run, 24 of four.
    assert both.bands == {"grpo": [24, 0, 24], "trloo": [24, 0, 24]}
    page = (kept / NAME / "README.md").read_text()
    assert "8 runs, seeds 0, 1, 2, 3" in page and "over 4 seeds" in page
    assert {path.name.split("-seed")[1][0] for path in (kept / "runs").glob("trloo-*.md")} == set("0123")

    # The same piece once more adds nothing.
    written = {path: path.read_bytes() for path in kept.glob("**/*.json")}
    assert main(["--runs", str(later), "--out", str(kept), "--add"]) == 0
    assert {path: path.read_bytes() for path in written} == written


def test_an_arm_of_a_later_piece_goes_on_with_the_same_policy(tmp_path: Path, kept: Path) -> None:
    for seed in (0, 1):
        made(tmp_path / "later", replace(arms.RLOO_ARM, seed=seed), 0.5, "card b", "policy a")
    assert main(["--runs", str(tmp_path / "later"), "--out", str(kept), "--only", NAME, "--add"]) == 0
    assert [run.arm for run in read(kept / NAME).runs] == ["grpo"] * 2 + ["trloo"] * 2 + ["rloo"] * 2


@pytest.mark.parametrize(
    ("run", "policy", "timing", "told"),
    [
        (arms.RLOO_ARM, "policy b", "measured", "ran from another policy or on another card"),
        (arms.RLOO_ARM, None, "measured", "ran from another policy or on another card"),
        (arms.TRLOO_ARM, "policy a", "measured", "is there already"),
        (arms.RLOO_ARM, "policy a", "modelled", "keeps runs of h200, measured time, and the new ones are of h200, modelled time"),
        (arms.PRESETS["world"].adapt(arms.RLOO_ARM), "policy a", "measured", "and the new ones are of world, measured time"),
    ],
)
def test_what_cannot_be_compared_is_not_added(
    run: Run, policy: str | None, timing: str, told: str, tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = {path: path.read_bytes() for path in kept.glob("**/*.json")}
    made(tmp_path / "later", replace(run, seed=0), 0.5, "card b", policy, timing)
    capsys.readouterr()
    assert main(["--runs", str(tmp_path / "later"), "--out", str(kept), "--add"]) == 2
    assert told in capsys.readouterr().err
    assert {path: path.read_bytes() for path in written} == written
