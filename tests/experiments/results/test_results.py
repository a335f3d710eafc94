"""`docs/results` from run directories written by hand."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import arms, sequential_scaling
from experiments.catalogue import NAMES, load
from experiments.checked_in import read
from experiments.results import transcripts
from experiments.results.archive import index
from experiments.results.collecting import collect, refined_preset
from experiments.results.command import main
from experiments.results.figure import distinct
from experiments.results.findings import headline, read_headline
from experiments.results.numbers import manifest
from experiments.results.pages import Found, claims_table, overview, page
from experiments.results.run_pages import pages_in
from rlkernel.config import Run
from rlkernel.report.claims import Claim, DecidedClaim, Verdict, decide_claims
from rlkernel.report.report import Story
from rlkernel.report.summary import RunRecord, Window, read_run
from rlkernel.runs import directory as rundir
from rlkernel.runs.outcomes import KEYS
from rlkernel.types import Evaluation, OpFact, Status


def row(step: int, level: float, split: str = "validation") -> dict[str, Any]:
    return {"step": step, "split": split, **dict.fromkeys(KEYS, level), "reward": 2 * level, "hacking_rate": 0.0}


def write(directory: Path, run: Run, level: float, timing: str = "measured", finished: bool = True) -> Path:
    """A run whose shares rise from 0.1 to `level`."""
    directory.mkdir(parents=True)
    rundir.begin(directory, run)
    rundir.update_manifest(directory, timing=timing, evaluator={"place": "/home" + "/someone/x/y/z"})
    rows = [row(0, 0.1), {"step": 1, "split": "train", "reward": 0.5, "grad_norm": 1.0}, row(10, level)]
    (directory / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rows))
    problems = {f"level2/p{i}": {**row(10, level + 0.01 * i), "coverages": [0.2, 0.9]} for i in range(6)}
    (directory / "outcomes.jsonl").write_text(json.dumps({"split": "validation", "step": 10, "problems": problems}) + "\n")
    facts = Evaluation(
        Status.CORRECT, "", speedup=2.5, speedup_low=2.4, speedup_high=2.6, timing="measured", coverage=0.9,
        reference_ops=(OpFact("aten.mm", 1, 9.0, 0.8),),
    )  # fmt: skip
    turn = {"code": "class ModelNew: pass", "evaluation": facts.to_json(), "reward": 1.7}
    line = {"split": "validation", "step": 10, "problem": "level2/p0", "prompt": "", "turns": [turn]}
    (directory / "transcripts.jsonl").write_text(json.dumps(line) + "\n")
    if finished:
        rundir.finish(directory)
    return directory


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for seed in range(3):
        for run, level in ((arms.GRPO_ARM, 0.3), (arms.TRLOO_ARM, 0.6 + 0.004 * seed), (arms.RLOO_ARM, 0.6)):
            write(tmp_path / "runs" / "arms" / f"{run.name}-seed{seed}-a", replace(run, seed=seed), level + 0.01 * seed)
    # Not of this scale, not finished, not an arm of today.
    write(tmp_path / "runs" / "arms" / "grpo-seed0-b", replace(arms.GRPO_ARM, steps=5), 0.9, timing="modelled")
    write(tmp_path / "runs" / "arms" / "trloo-seed3-a", replace(arms.TRLOO_ARM, seed=3), 0.0, finished=False)
    write(tmp_path / "runs" / "arms" / "trloo-seed4-a", replace(arms.TRLOO_ARM, seed=4, gamma=0.5), 0.0)
    return tmp_path / "runs"


def test_pages_and_figures_are_made_again_from_what_is_checked_in(tmp_path: Path, runs: Path) -> None:
    out = tmp_path / "out"
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    written = {path: path.read_bytes() for path in out.glob("**/*") if path.suffix in (".md", ".png", ".json")}
    assert {"README.md", "fails.png", "holds.png"} <= {path.name for path in written}
    for path in written:
        if path.suffix == ".png" or path.name == "README.md":
            path.unlink()
    numbers = out / "multi_turn_estimators" / "numbers.json"
    measured = json.loads(numbers.read_text())
    # What an earlier rule has said.
    numbers.write_text(json.dumps({**measured, "claims": [{**one, "verdict": "unclear"} for one in measured["claims"]]}))
    assert main(["--again", str(out)]) == 0
    assert {path: path.read_bytes() for path in written} == written
    overview = (out / "README.md").read_text()
    # All claims whose arms have runs are decided, so that there is nothing to write under the third title.
    assert "## What holds" in overview and "## What could not be decided" not in overview
    assert re.search(
        r"^\d claims\. The clearest: .*: higher as claimed, .* "
        r"\(\[its runs\]\(\w+/README.md\)(, \[what was seen in them\]\(\w+/findings.md\))?\)\.$",
        overview,
        re.MULTILINE,
    )
    assert not (out / "open.png").exists()


def test_a_claim_of_two_experiments_counts_once_by_the_family_that_asks_most() -> None:
    def decided(verdict: Verdict, p: float | None, **changes: Any) -> DecidedClaim:
        about = {"text": "b above a", "better": "b", "worse": "a", "metric": "reward", "paper": "", **changes}
        return DecidedClaim(Claim(**about), verdict, None, p, "")

    lenient, strict = decided(Verdict.REPRODUCED, 0.03), decided(Verdict.UNCLEAR, 0.08, text="the same", margin=0.02)
    mirrored = decided(Verdict.UNCLEAR, 0.05, better="a", worse="b", higher=False)
    opposite, early = decided(Verdict.UNCLEAR, 0.5, higher=False), decided(Verdict.UNCLEAR, None, window=Window(last=1))
    assert distinct([lenient, early, strict, mirrored, opposite]) == [strict, early, opposite]
    assert distinct([strict, lenient]) == [strict]


def test_the_table_says_where_nothing_can_be_told_apart() -> None:
    runs = {
        arm: [RunRecord(Path(arm), arm, seed, "measured", {}, ({"step": 5, "reward": level},)) for seed in range(2)]
        for arm, level in (("a", 0.0), ("b", 0.0), ("c", 0.4))
    }
    claims = [Claim("b above a", "b", "a", "reward", "none"), Claim("c above a", "c", "a", "reward", "none")]
    floor, apart = claims_table(decide_claims(claims, runs))[2:]
    assert floor.endswith(
        "| 0.00 [0.00, 0.00] |  | **unclear**: both arms are at 0 in every seed: nothing to tell apart | none |"
    )
    assert apart.endswith("| +0.40 [+0.40, +0.40] |  | **unclear** | none |")


@pytest.mark.parametrize("kind", ["certain", "after_look"])
def test_what_holds_by_definition_or_was_claimed_after_a_look_is_no_headline(kind: str) -> None:
    """The first claim has the smaller p."""
    rows = {"a": (0.10, 0.11, 0.12), "b": (0.90, 0.91, 0.921), "c": (0.5, 0.58, 0.66)}
    runs = [
        RunRecord(Path(arm), arm, seed, "measured", {"machine": {"gpus": []}}, ({"step": 5, "fast_1": level},))
        for arm, levels in rows.items()
        for seed, level in enumerate(levels)
    ]
    claims = [Claim("B is above A", "b", "a", "fast_1", "none"), Claim("C is above A", "c", "a", "fast_1", "none")]
    for first, told in ((claims[0], "B is above A"), (replace(claims[0], **{kind: True}), "C is above A")):
        one = Found("first_look", Story("X", "", (first, claims[1]), ()), tuple(runs), "", {})
        assert f"2 claims. The clearest: {told}: " in overview([one], kernels=False, cold_start=False, seen={})


def test_checked_in_numbers_that_do_not_fit_are_one_line(tmp_path: Path, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--again", str(tmp_path)]) == 2
    assert "no folder of an experiment with numbers.json and manifests.json is in it" in capsys.readouterr().err
    out = tmp_path / "out"
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    (out / "multi_turn_estimators" / "manifests.json").write_text("[]")
    capsys.readouterr()
    assert main(["--again", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {out / 'multi_turn_estimators'}: numbers.json and manifests.json do not fit together")
    assert said.count("\n") == 1


def test_without_finished_runs_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path} has no finished runs that an experiment compares: run")
    assert not (tmp_path / "out").exists()


def test_runs_that_nothing_compares_are_counted_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "arms"
    write(place / "grpo-seed0-a", replace(arms.GRPO_ARM, steps=1), 0.3)
    write(place / "grpo-seed1-a", replace(arms.GRPO_ARM, steps=1, seed=1), 0.3, finished=False)
    write(place / "mine-seed0-a", replace(arms.GRPO_ARM, name="mine"), 0.3)
    assert main(["--runs", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path} has 3 runs, none of which an experiment compares (1 not finished, "
        "1 of an arm that no experiment has today, or of sizes that others outnumber, "
        "1 without another arm of the same seed and sizes, or without the problems that a claim is about, "
        "1 of these of sizes that no preset has, which need --any-scale): run `python -m experiments.all` first\n"
    )


def test_pages_hold_verdicts_numbers_manifests_and_kernels(
    tmp_path: Path, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    (out / "runs").mkdir(parents=True)
    (out / "runs" / "of-an-earlier-time.md").write_text("stale")
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    assert "reproduced" in capsys.readouterr().out
    page = (out / "multi_turn_estimators" / "README.md").read_text()
    # TRLOO is above GRPO by 0.300, 0.304, 0.308: half the interval 4.3027 * 0.004 / sqrt(3) = 0.0099. It is above RLOO in reward,
    # which is twice the level, by 0, 0.008, 0.016: within 0.05 of 0. One-turn GRPO has no run.
    verdicts = dict(re.findall(r"^\| (.*?) \(`\w+` against.*\*\*(.*?)\*\*", page, re.MULTILINE))
    assert verdicts["TRLOO ends above GRPO in Fast@1"] == "reproduced"
    assert verdicts["TRLOO ends above RLOO in reward"] == "not reproduced (within the margin)"
    assert verdicts["Training on several turns beats training on one, best of three"] == "no finished runs"
    assert "+30 % [+29, +31]" in page and "| `grpo` | 3 |" in page
    # Every run, with its seed and the page of its turns, and no page of another.
    manifests = json.loads((out / "multi_turn_estimators" / "manifests.json").read_text())
    for one in manifests:
        place = f"{one['arm']}-seed{one['seed']}-{one['fingerprint'][:8]}"
        assert f"| `{one['arm']}` | {one['seed']} | [{place}](../runs/{place}.md) |" in page
    assert {path.name for path in (out / "runs").iterdir()} == {
        f"{one['arm']}-seed{one['seed']}-{one['fingerprint'][:8]}.md" for one in manifests
    }
    assert len(manifests) == 9 and "python -m experiments.multi_turn_estimators grpo --seeds 0" in page
    # Of coverages 0.2 and 0.9 in each of 6 problems and 3 seeds.
    assert "| `trloo` | 36 | 50 % | 0 % | 50 % |" in page
    assert (out / "multi_turn_estimators" / "figure.png").stat().st_size > 10_000

    numbers = json.loads((out / "multi_turn_estimators" / "numbers.json").read_text())
    assert [(run["arm"], run["seed"]) for run in numbers["runs"]] == [
        (arm, seed) for arm in ("grpo", "trloo", "rloo") for seed in range(3)
    ]
    assert numbers["runs"][0]["validation"]["fast_1"] == [0.1, 0.3]
    claim = next(claim for claim in numbers["claims"] if claim["metric"] == "fast_1")
    # Six problems, all better: 2 of 64 flips. Over seeds t = 0.304 / (0.004 / sqrt(3)), corrected for the other claims with a p.
    assert claim["difference"]["p"] == 2 / 64
    assert claim["difference"]["seeds_p"] < claim["adjusted_p"] < 0.001

    overview = (out / "README.md").read_text()
    missing = (
        "reward_hacking, group_size, plain_descent, mismatch, off_policy, twice_the_rate, lazy_optimisation, hierarchical_reward"
    )
    missing += ", transfer, sequential_scaling"
    assert f"Without finished runs: {missing}." in overview and "**measured**" in overview
    kernels = (out / "kernels.md").read_text()
    assert "## level2/p0: 2.50x [2.40, 2.60] (measured)" in kernels and "aten.mm (80 %)" in kernels


def test_findings_written_by_hand_are_linked_quoted_and_kept(tmp_path: Path, runs: Path) -> None:
    out = tmp_path / "out"
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    directory = out / "multi_turn_estimators"
    assert "findings.md" not in (directory / "README.md").read_text() + (out / "README.md").read_text()
    written = "# Seen\n\nOn two cards.\n\n**The rate alone\ndoes it.** The age adds nothing.\n\n**Nor do seeds.**\n"
    (directory / "findings.md").write_text(written)
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    told = "\n[What was seen in these runs]({}findings.md): **The rate alone does it.**\n"
    assert told.format("") in (directory / "README.md").read_text()
    # On the first page it stands between the title of the experiment and the verdicts, and nowhere else.
    front = (out / "README.md").read_text()
    title = "## [Multi turn estimators](multi_turn_estimators/README.md)\n"
    assert title + told.format("multi_turn_estimators/") + "\n| claim |" in front
    assert front.count("**The rate alone does it.**") == 1
    assert (directory / "findings.md").read_text() == written


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("**PR adds 1 to 4**, by Fast@1.2 and\nmore, e.g. pay.\nNo.", "PR adds 1 to 4, by Fast@1.2 and more, e.g. pay."),
        ("Seen.\n\n**It is [noise](a.md#b).** So.", "It is noise."),
        ("It is **not** noise.\n\n**Is it?** No.", "Is it?"),
        ("**No stop at all**\n\nAnother. Paragraph.", "No stop at all"),
        ("Nothing is bold.", ""),
    ],
)  # fmt: skip
def test_the_headline_is_the_first_sentence_that_begins_a_paragraph_in_bold(written: str, told: str) -> None:
    assert headline(f"# Title\n\n{written}") == told


def test_results_are_moved_to_a_folder_of_their_date_and_keep_their_claims(
    tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    pages = {path.relative_to(out): path.read_bytes() for path in out.glob("**/*") if path.is_file()}
    finished = {json.loads(path.read_text()).get("finished", "")[:10] for path in runs.glob("arms/*/manifest.json")}
    place = out / max(finished)
    assert main(["--archive", str(out)]) == 0
    assert {path.relative_to(place): path.read_bytes() for path in place.glob("**/*") if path.is_file()} == pages
    first = re.search(r"^\d+ .*speak of\.", pages[Path("README.md")].decode(), re.MULTILINE)
    assert first is not None
    (out / "wild.md").write_text("# Others\n\n1. Not this.\n\n12 candidates:\n\n9 of 12 are right (75.5 %). More.\n")
    assert main(["--again", str(out)]) == 0
    front = (out / "README.md").read_text()
    assert f"## [Results of {place.name}]({place.name}/README.md)\n\n{first[0]}\n\n[![Results of" in front
    assert f"]({place.name}/holds.png)]({place.name}/README.md)" in front
    assert "## [Others](wild.md)\n\n9 of 12 are right (75.5 %).\n\n## What is claimed today" in front

    # An experiment that claims and says something else by now.
    story = load("multi_turn_estimators").story
    late = replace(story, docstring="Other words.", claims=(replace(story.claims[0], text="Added later"), *story.claims))
    now = {name: load(name) for name in NAMES} | {"multi_turn_estimators": replace(load("multi_turn_estimators"), story=late)}
    monkeypatch.setattr("experiments.results.command.load", now.__getitem__)
    assert main(["--again", str(place)]) == 0
    assert {path.relative_to(place): path.read_bytes() for path in place.glob("**/*") if path.is_file()} == pages
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    assert "Added later" in (out / "multi_turn_estimators" / "README.md").read_text()
    front = (out / "README.md").read_text()
    assert f"- [Results of {place.name}]({place.name}/README.md): {first[0]}\n- [Others](wild.md): 9 of 12" in front
    capsys.readouterr()
    assert main(["--archive", str(out)]) == 2
    assert f"{place} exists: move what is in it away first" in capsys.readouterr().err


def with_the_recipe(runs: Path, out: Path) -> Path:
    """Write the results of these runs, and of two of the whole recipe, to a folder. Returns it."""
    for seed in range(2):
        run = replace(arms.MRS_PR_PRS, seed=seed)
        write(runs / "arms" / f"{run.name}-seed{seed}-a", run, 0.7 + 0.01 * seed)
    assert main(["--runs", str(runs), "--out", str(out)]) == 0
    return out


def test_one_experiment_is_moved_and_written_anew_and_the_others_stay(
    tmp_path: Path, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = with_the_recipe(runs, tmp_path / "out")
    kept = {path: path.read_bytes() for name in ("multi_turn_estimators", "runs") for path in (out / name).glob("*")}
    moved = {path.name for path in kept if path.name.startswith("trloo_mrs_pr_prs-")}
    assert len(moved) == 2
    place = out / max(one["finished"] for one in json.loads((out / "full_recipe" / "manifests.json").read_text()))[:10]
    assert main(["--archive", str(out), "--only", "full_recipe"]) == 0
    assert (place / "full_recipe" / "numbers.json").is_file() and not (out / "full_recipe").exists()
    page_of_the_moved = (place / "full_recipe" / "README.md").read_text()
    assert all((place / "runs" / name).is_file() and f"../runs/{name}" in page_of_the_moved for name in moved)
    assert "## [Full recipe](full_recipe/README.md)" in (place / "README.md").read_text()
    front = (out / "README.md").read_text()
    assert f"[Results of {place.name}]" in front and "Full recipe]" not in front and "estimators](multi" in front

    later = tmp_path / "later"
    for seed in range(3):
        for run, level in ((arms.GRPO_ARM, 0.2), (arms.MRS_PR_PRS, 0.8)):
            write(later / "arms" / f"{run.name}-seed{seed}-b", replace(run, seed=seed, steps=48), level + 0.01 * seed)
    shared = ["--runs", str(later), "--out", str(out), "--any-scale"]
    assert main([*shared, "--only", "full_recipe"]) == 0
    stays = {path: text for path, text in kept.items() if path.name not in moved}  # nobody there has these runs any more
    assert {path: path.read_bytes() for path in kept if path.exists()} == stays
    assert [run.manifest["run"]["steps"] for run in read(out / "full_recipe").runs] == [48] * 6
    front = (out / "README.md").read_text()
    assert "[Full recipe](full_recipe/README.md)" in front and "estimators](multi" in front
    capsys.readouterr()
    assert main([*shared, "--only", "recipes"]) == 2
    assert capsys.readouterr().err.startswith("error: --only recipes: choose from first_look, ")
    assert main(["--again", str(out), "--only", "full_recipe"]) == 2
    assert "--again writes all" in capsys.readouterr().err


def test_experiments_of_one_day_are_moved_one_after_the_other(
    tmp_path: Path, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = with_the_recipe(runs, tmp_path / "out")
    names = ("full_recipe", "multi_turn_estimators")
    finished = {one["finished"][:10] for name in names for one in json.loads((out / name / "manifests.json").read_text())}
    place = out / max(finished)
    assert finished == {place.name}
    assert main(["--archive", str(out), "--only", names[0]]) == 0
    assert main(["--archive", str(out)]) == 2
    assert f"{place} exists: add experiments to it with --only" in capsys.readouterr().err
    assert main(["--archive", str(out), "--only", names[1]]) == 0
    front = (place / "README.md").read_text()
    assert all(f"]({name}/README.md)" in front and not (out / name).exists() for name in names)


def test_the_pages_of_this_checkout_are_those_of_their_numbers(tmp_path: Path) -> None:
    """Nobody has edited a page of earlier results, apart from `findings.md`."""
    results = Path(__file__).parents[3] / "docs" / "results"
    dates = [path.parent for path in results.glob("*/README.md") if path.parent.name[:2] == "20"]
    assert (results / "2026-11-21") in dates
    for place in dates:
        for numbers in place.glob("*/numbers.json"):
            name, kept = numbers.parent.name, read(numbers.parent)
            found = Found(
                name,
                replace(of_then(name), docstring=kept.docstring, claims=kept.claims or ()),
                kept.runs,
                kept.preset,
                kept.bands,
            )
            text = page(
                found,
                findings=read_headline(numbers.parent),
                transcripts=transcripts.links(transcripts.read(numbers.parent)),
                run_pages=pages_in(place),
            )
            assert text == (numbers.parent / "README.md").read_text()
    if not list(results.glob("*/numbers.json")):
        assert index(results) == (results / "README.md").read_text(), "run `python -m experiments.results --again docs/results`"
    overview = (results / "2026-11-21" / "README.md").read_text()
    assert all(f"\n- {sentence}\n" in overview for sentence in arms.MINIATURE)


@pytest.mark.slow
def test_the_results_of_this_checkout_are_those_of_their_numbers(tmp_path: Path) -> None:
    """Nobody has edited a page of today's results, apart from `findings.md`."""
    results, again = Path(__file__).parents[3] / "docs" / "results", tmp_path / "results"
    shutil.copytree(results, again)
    assert main(["--again", str(again)]) == 0
    pages = [path.relative_to(again) for path in again.rglob("*.md")]
    assert Path("README.md") in pages
    for path in pages:
        assert (again / path).read_text() == (results / path).read_text(), (
            f"{path}: run `python -m experiments.results --again docs/results`"
        )


def of_then(name: str) -> Story:
    return sequential_scaling.STORY if name == "sequential_scaling" else load(name).story


def test_manifests_name_no_place_and_are_short(runs: Path) -> None:
    found = manifest(read_run(runs / "arms" / "grpo-seed0-a"))
    assert found["evaluator"]["place"] == "x/y/z"
    assert found["run"]["problems"]["count"] == len(arms.BASE.problems)
    assert "/home" not in json.dumps(found)


def test_sizes_of_no_preset_are_refused_or_labelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(2):
        for run, level in ((arms.GRPO_ARM, 0.3), (arms.TRLOO_ARM, 0.6)):
            write(tmp_path / "runs" / "arms" / f"{run.name}-seed{seed}", replace(run, seed=seed, steps=5), level + 0.01 * seed)
    argv = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    assert main(argv) == 2
    assert "the runs of first_look have sizes that no preset has: give --any-scale" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([*argv, "--any-scale"]) == 0
    assert "of **sizes of no preset**" in (tmp_path / "out" / "multi_turn_estimators" / "README.md").read_text()


def test_learning_rates_are_of_one_scale_in_proportion_to_their_arms(tmp_path: Path) -> None:
    """`hot` has five times the learning rate of `trloo` at every scale."""
    for scale in (1, 10):
        for run in (arms.TRLOO_ARM, arms.HOT, arms.HOT_STALE):
            for seed in range(3 - scale // 10):
                run_here = replace(run, seed=seed, learning_rate=scale * run.learning_rate)
                write(tmp_path / "arms" / f"{run.name}-{scale}-seed{seed}", run_here, 0.5)
    found = next(one for one in collect(tmp_path) if one.name == "mismatch")
    assert [(run.arm, run.seed) for run in found.runs] == [
        (arm, seed) for arm in ("trloo", "hot", "hot_stale") for seed in range(3)
    ]
    assert {run.manifest["run"]["learning_rate"] for run in found.runs} == {1e-4, 5e-4}
    assert found.preset == "h200"


def test_the_policy_before_training_has_a_page(tmp_path: Path, runs: Path) -> None:
    shares = {"fast": 0.25, "medium": 0.0, "lazy": 0.25, "no_kernel": 0.5, "incorrect": 0.0, "broken": 0.0}
    facts = {
        "timing": "measured",
        "turns": [{**shares, "reward": 0.7}],
        "next": dict.fromkeys(shares, shares),
        "metrics": {"evaluations": 4, "fast_1": 0.5, "fast_1.2": 0.25},
    }
    (runs / "policy").mkdir()
    (runs / "policy" / "behaviour.json").write_text(json.dumps(facts))
    assert main(["--runs", str(runs), "--out", str(tmp_path / "out"), "--only", "multi_turn_estimators"]) == 0
    assert not (tmp_path / "out" / "cold_start.md").exists(), "which may be about the policy of others"
    assert main(["--runs", str(runs), "--out", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "cold_start.md").read_text()
    assert "| 1 | 25 % | 0 % | 25 % | 50 % | 0 % | 0 % | 0.70 |" in page and "Fast@1 50 %, Fast@1.2 25 %" in page
    assert "(cold_start.md)" in (tmp_path / "out" / "README.md").read_text()


def chosen(directory: Path, name: str) -> list[tuple[str, int, float]]:
    found = next(one for one in collect(directory) if one.name == name)
    return [(run.arm, run.seed, run.validation[-1]["fast_1"]) for run in found.runs]


def test_runs_of_other_sizes_or_definitions_are_not_mixed_in(tmp_path: Path) -> None:
    """Not even later ones: fewer turns or prompts, another precision of the rollouts, more staleness, no clipping."""
    for run in (arms.GRPO_ARM, arms.TRLOO_ARM, arms.FLOAT8):
        for seed in range(2):
            write(tmp_path / "arms" / f"{run.name}-seed{seed}", replace(run, seed=seed), 0.6)
    expected = [(arm, seed, 0.6) for arm in ("grpo", "trloo") for seed in range(2)]
    changes = ({"turns": 1}, {"prompts_per_step": 1}, {"validation_turns": 1}, {"rollout_dtype": "float8"}, {"staleness": 1})
    for i, change in enumerate((*changes, {"max_grad_norm": 0.0})):
        write(tmp_path / "arms" / f"trloo-other{i}", replace(arms.TRLOO_ARM, **change), 0.1)
    assert chosen(tmp_path, "multi_turn_estimators") == expected


def test_measured_runs_come_before_more_modelled_ones_and_the_later_before_the_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu = arms.PRESETS["cpu"]
    for seed in range(3):
        for run in (arms.GRPO_ARM, arms.TRLOO_ARM):
            write(tmp_path / "arms" / f"{run.name}-cpu{seed}", replace(cpu.adapt(run), seed=seed), 0.1, timing="modelled")
    for hour, level in (("10", 0.5), ("12", 0.7), ("11", 0.6)):
        monkeypatch.setattr(rundir, "_now", lambda hour=hour: f"2026-01-01T{hour}:00:00+0000")
        for run in (arms.GRPO_ARM, arms.TRLOO_ARM):
            write(tmp_path / "arms" / f"{run.name}-h{hour}", run, level)
    assert chosen(tmp_path, "multi_turn_estimators") == [("grpo", 0, 0.7), ("trloo", 0, 0.7)]


def test_refined_runs_of_other_turns_or_policies_are_another_scale(tmp_path: Path) -> None:
    base = arms.PRESETS["h200"].adapt(arms.MRS_PR_PRS)
    for seed in range(2):
        for name, run, level in (
            ("a", replace(base, turns=15, model=f"runs/x/checkpoint-{seed}"), 0.6),
            ("b", replace(base, turns=15, model="runs/policy"), 0.2),
        ):
            directory = write(tmp_path / "refined" / f"top-{name}{seed}", replace(run, name="top", seed=seed), level)
            rundir.update_manifest(directory, context={"class": "TopTurns"})
    for seed in range(3):
        directory = write(tmp_path / "refined" / f"full-{seed}", replace(base, name="full", turns=9, seed=seed), 0.9)
        rundir.update_manifest(directory, context={"class": "FullHistory"})
    for seed in range(2, 4):
        run = replace(base, name="top", turns=15, seed=seed, model=f"runs/x/checkpoint-{seed}")
        rundir.update_manifest(write(tmp_path / "refined" / f"top-c{seed}", run, 0.6), context={"class": "TopTurns"})
    # Four of checkpoints at 15 turns against three of 9 turns and two of the cold start.
    assert chosen(tmp_path, "sequential_scaling") == [("top", seed, 0.6) for seed in range(4)]


@pytest.mark.parametrize("preset", sequential_scaling.PRESETS)
def test_refined_runs_name_the_preset_whose_policy_they_refined(preset: str, tmp_path: Path) -> None:
    """The sizes of `world` and `world_shown` are equal; the policy is not."""
    unit = sequential_scaling.plan(sequential_scaling.Flags(out=tmp_path, seeds=(0,)), arms.PRESETS[preset])[0]
    assert refined_preset(read_run(write(tmp_path / "unit", unit.run, 0.5))) == preset
    assert refined_preset(read_run(write(tmp_path / "shorter", replace(unit.run, turns=9), 0.5))) == ""
