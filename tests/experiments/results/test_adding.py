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
        (arms.TRLOO_ARM, "policy a", "measured", "is there already"),
        (arms.RLOO_ARM, "policy a", "modelled", "keeps runs of h200, measured time, and the new ones are of h200, modelled time"),
        (arms.PRESETS["world"].adapt(arms.RLOO_ARM), "policy a", "measured", "and the new ones are of world, measured time"),
        (replace(arms.RLOO_ARM, steps=7), "policy a", "measured", "and the new ones are of no preset, measured time"),
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


def refused(kept: Path, runs: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """What is said of runs that are not added; nothing changes."""
    written = {path: path.read_bytes() for path in kept.glob("**/*.json")}
    capsys.readouterr()
    assert main(["--runs", str(runs), "--out", str(kept), "--add", *flags]) == 2
    assert {path: path.read_bytes() for path in written} == written
    return capsys.readouterr().err


def changed_manifests(kept: Path, **facts: object) -> None:
    """Let the manifests that are kept have other facts of their runs."""
    path = kept / NAME / "manifests.json"
    manifests = json.loads(path.read_text())
    path.write_text(json.dumps([{**one, "run": {**one["run"], **facts}} for one in manifests]))


def test_runs_of_an_arm_that_was_another_then_are_not_averaged_with_it(
    tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = piece(tmp_path / "later", (2,), "card b", "policy b")
    changed_manifests(kept, gamma=0.5)
    assert f"--add: grpo of seed 2 ran as another grpo than {kept / NAME} keeps" in refused(kept, later, capsys)
    changed_manifests(kept, gamma=1.0, max_new_tokens=99)  # as the preset had it then
    assert f"--add: grpo of seed 2 ran at another scale than {kept / NAME} keeps" in refused(kept, later, capsys)


def test_sizes_of_no_preset_are_one_scale_only_where_they_are_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def of(place: str, seed: int, steps: int) -> Path:
        for run in (arms.GRPO_ARM, arms.TRLOO_ARM):
            made(tmp_path / place, replace(run, seed=seed, steps=steps), 0.5, "card a", "policy a")
        return tmp_path / place

    out = tmp_path / "out"
    assert main(["--runs", str(of("first", 0, 7)), "--out", str(out), "--any-scale"]) == 0
    told = refused(out, of("second", 1, 9), capsys, "--any-scale")
    assert "of seed 1 ran at another scale than" in told
    assert main(["--runs", str(of("third", 2, 7)), "--out", str(out), "--any-scale", "--add"]) == 0
    assert [run.seed for run in read(out / NAME).runs] == [0, 2, 0, 2]


def test_an_arm_that_is_gone_is_told(tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    later = piece(tmp_path / "later", (2,), "card b", "policy b")
    for name in ("numbers.json", "manifests.json"):
        path = kept / NAME / name
        path.write_text(path.read_text().replace('"grpo"', '"renamed"'))
    assert f"{kept / NAME} keeps runs of renamed, no arm of {NAME} today" in refused(kept, later, capsys)


def test_numbers_that_pages_of_today_do_not_have_are_not_lost(
    tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = piece(tmp_path / "later", (2,), "card b", "policy b")
    path = kept / NAME / "numbers.json"
    path.write_text(path.read_text().replace('"grad_norm"', '"once_measured"'))
    assert "keeps once_measured, which would be lost" in refused(kept, later, capsys)


def test_an_arm_that_began_from_another_policy_stands_beside_those_of_its_seed_and_is_compared_with_none(
    tmp_path: Path, kept: Path
) -> None:
    for seed in (0, 1):
        made(tmp_path / "later", replace(arms.RLOO_ARM, seed=seed), 0.5, "card b", "policy b")
    assert main(["--runs", str(tmp_path / "later"), "--out", str(kept), "--only", NAME, "--add"]) == 0
    assert [run.arm for run in read(kept / NAME).runs] == ["grpo"] * 2 + ["trloo"] * 2 + ["rloo"] * 2
    page = (kept / NAME / "README.md").read_text()
    assert "| TRLOO ends above GRPO in reward (`trloo` against `grpo`) | `reward` | +0.60 [+0.55, +0.65] |" in page
    assert "- **TRLOO ends above RLOO in reward**: no finished runs; runs of equal seed began from different policies." in page


def test_runs_that_name_no_policy_on_two_cards_are_not_taken_for_one_piece(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["--runs", str(piece(tmp_path / "first", (0, 1), "card a")), "--out", str(out)]) == 0
    for card, refused_here in (("card a", False), ("card b", True)):
        made(tmp_path / card, replace(arms.RLOO_ARM, seed=0), 0.5, card, None)
        capsys.readouterr()
        assert main(["--runs", str(tmp_path / card), "--out", str(tmp_path / "out"), "--add"]) == (2 if refused_here else 0)
        told = "is there already" if not refused_here else "grpo of seed 0 in"
        assert (told in capsys.readouterr().err) is refused_here


def test_claims_that_are_younger_than_the_runs_say_so_and_dropped_ones_stay(tmp_path: Path, kept: Path) -> None:
    path = kept / NAME / "numbers.json"
    numbers = json.loads(path.read_text())
    first, *others = numbers["claims"]
    dropped = {**first, "text": "GRPO is above TRLOO", "better": "grpo", "worse": "trloo"}
    path.write_text(json.dumps({**numbers, "claims": [dropped, *others]}))
    later = piece(tmp_path / "later", (2, 3), "card b", "policy b")
    assert main(["--runs", str(later), "--out", str(kept), "--add"]) == 0
    claims = read(kept / NAME).claims or ()
    assert [claim.after_look for claim in claims] == [True, *(claim["after_look"] for claim in others), False]
    assert claims[0].text == first["text"] and claims[-1].text == "GRPO is above TRLOO"


def test_where_all_runs_are_there_already_words_and_claims_of_then_stay(tmp_path: Path, kept: Path) -> None:
    path = kept / NAME / "numbers.json"
    numbers = {**json.loads(path.read_text()), "docstring": "What was meant then."}
    path.write_text(json.dumps({**numbers, "claims": numbers["claims"][:1]}))
    before = read(kept / NAME)
    runs = piece(tmp_path / "first", (0, 1), "card a", "policy a")
    for directory in (runs / "arms").iterdir():  # the runs that are kept
        there = next(run for run in before.runs if directory.name.startswith(f"{run.arm}-seed{run.seed}"))
        rundir.update_manifest(directory, **{key: there.manifest[key] for key in ("fingerprint", "finished")})
    assert main(["--runs", str(runs), "--out", str(kept), "--add"]) == 0
    after = read(kept / NAME)
    assert after == before and after.docstring == "What was meant then." and len(after.claims or ()) == 1
