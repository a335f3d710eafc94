"""The arms of all experiments: what they differ in, who shares them, and one tiny run of each, end to end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import all as everything
from experiments import arms, paper_scale
from experiments.catalogue import NAMES, load, sharing
from rlkernel.commands import experiment
from rlkernel.commands.asked import Flags
from rlkernel.commands.plan import check_arms, check_policy, plan
from rlkernel.config import Run, fingerprint, to_json
from rlkernel.errors import UsageError

EXPERIMENTS = [load(name) for name in NAMES]
TINY = (
    "--preset",
    "cpu",
    "--steps",
    "1",
    "--rollouts",
    "2",
    "--validation-rollouts",
    "1",
    "--max-new-tokens",
    "4",
    "--seeds",
    "0",
    "--jobs",
    "1",
)


@pytest.mark.parametrize("one", EXPERIMENTS, ids=lambda one: one.name)
def test_claims_name_arms_and_the_docstring_says_what_is_asked(one: experiment.Experiment) -> None:
    check_arms(one.arms)
    assert one.name in NAMES
    for claim in one.story.claims:
        assert {claim.better, claim.worse} <= set(one.arms)
    assert {arm for claim in one.story.claims for arm in (claim.better, claim.worse)} == set(one.arms), "an arm that nobody reads"
    for word in ("arXiv", "Arms", "Expected outcome:", "Cost:"):
        assert word in one.story.docstring, word
    for arm in one.arms:
        assert f"`{arm}`" in one.story.docstring, arm
    assert len(one.story.panels) == 4


@pytest.mark.parametrize(("preset", "left_out"), [("cpu", ["recipe_without_products"]), ("world", [])])
def test_arms_that_cannot_draw_are_left_out_of_all(preset: str, left_out: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An arm that holds products out is none where no problem is a product, and the others train."""
    whole = everything.everything(EXPERIMENTS)
    jobs = plan(whole.arms, Flags(preset=preset, seeds=(0, 1)), arms.PRESETS[preset])
    found = {run.name for run, _ in everything.drawable(jobs)}
    told = capsys.readouterr().err.splitlines()
    assert sorted(whole.arms.keys() - found) == left_out
    assert [line.partition("': ")[0] for line in told] == [f"left out: run '{name}" for name in left_out]


def test_the_policy_of_a_preset_must_have_been_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = Flags(preset="h200", seeds=(0,))
    preset = arms.PRESETS["h200"]
    jobs = plan({"trloo": arms.TRLOO_ARM}, flags, preset)
    with pytest.raises(UsageError, match=r"not in runs/policy: make it with `python -m experiments.cold_start --size medium`"):
        check_policy(jobs, preset, flags)
    (tmp_path / "runs" / "policy").mkdir(parents=True)
    check_policy(jobs, preset, flags)


def test_an_arm_of_one_name_is_one_value_everywhere() -> None:
    prints: dict[str, set[str]] = {}
    for one in EXPERIMENTS:
        for arm, run in one.arms.items():
            prints.setdefault(arm, set()).add(fingerprint(run))
    assert all(len(found) == 1 for found in prints.values())
    shared = {arm for arm in prints if sum(arm in one.arms for one in EXPERIMENTS) > 1}
    gaps = {"hot", "hot_age2", "float8", "float8_mrs"}
    assert shared == {"trloo", "grpo", "grpo_single_turn", "trloo_mrs", "trloo_mrs_pr", "trloo_mrs_pr_prs", *gaps}
    others = ("first_look", "reward_hacking", "multi_turn_estimators", "off_policy", "full_recipe", "transfer")
    known = load("mismatch").arms
    assert sharing("mismatch", known)["trloo"] == others
    hidden = replace(arms.GRPO_ARM, gamma=0.5)
    assert sharing("mine", {"grpo": hidden, "trloo": arms.TRLOO_ARM})["grpo"] == (), "an arm of the same name that differs"
    assert "mismatch" in sharing("mine", {"grpo": hidden, "trloo": arms.TRLOO_ARM})["trloo"]


def test_a_second_arm_of_one_name_does_not_replace_the_first() -> None:
    with pytest.raises(UsageError, match=r"two arms are called 'grpo': give the second a name="):
        arms.by_name(arms.GRPO_ARM, replace(arms.GRPO_ARM, gamma=0.5))
    assert list(arms.by_name(arms.GRPO_ARM, replace(arms.GRPO_ARM, name="half", gamma=0.5))) == ["grpo", "half"]


@pytest.mark.parametrize(
    ("one", "other", "fields"),
    [
        (arms.GRPO_ARM, arms.TRLOO_ARM, {"advantage"}),
        (arms.GRPO_ARM, arms.GRPO_SINGLE_TURN, {"turns", "prompts_per_step", "validation_turns"}),
        (arms.GRPO_ARM, arms.GRPO_SINGLE_TURN_PROMPTS, {"turns", "validation_turns"}),
        (arms.TRLOO_ARM, arms.K16["trloo"], {"rollouts", "prompts_per_step"}),
        (arms.K4["grpo"], arms.K4["dr_grpo"], {"advantage"}),
        (arms.SGD["trloo"], arms.SGD["dr_grpo"], {"advantage"}),
        (arms.TRLOO_ARM, arms.TRLOO_STOP, {"stop"}),
        (arms.TRLOO_ARM, arms.UNCHECKED, {"reward"}),
        (arms.TRLOO_ARM, arms.MRS_ARM, {"corrections"}),
        (arms.MRS_PR, arms.MRS_PR_PRS, {"corrections"}),
        (arms.MRS_ARM, arms.MRS_PR, {"reward"}),
        (arms.TRLOO_ARM, arms.STALE, {"staleness"}),
        (arms.STALE, arms.STALE_MRS, {"corrections"}),
        (arms.TRLOO_ARM, arms.FLOAT8, {"rollout_dtype"}),
        (arms.FLOAT8, arms.FLOAT8_MRS, {"corrections"}),
        (arms.TRLOO_ARM, arms.HOT, {"learning_rate"}),
        (arms.HOT_STALE, arms.HOT_STALE_MRS, {"corrections"}),
        (arms.HOT, arms.HOT_AGE2, {"staleness"}),
        (arms.HOT_AGE2, arms.HOT_AGE2_TIS, {"corrections"}),
        (arms.TRLOO_ARM, arms.AGE2, {"staleness"}),
        (arms.AGE2_MRS, arms.HOT_AGE2_MRS, {"learning_rate"}),
        (arms.HOT, arms.HOT_FLOAT8, {"rollout_dtype"}),
        (arms.HOT_FLOAT8, arms.HOT_FLOAT8_TIS, {"corrections"}),
        (arms.CAPPED, arms.CAPPED_MRS, {"corrections"}),
        (arms.CAPPED_MRS, arms.CAPPED_MRS_PRS, {"corrections"}),
        (arms.FLOAT8, arms.FLOAT8_MIS, {"corrections"}),
        (arms.CAPPED, arms.CAPPED_UNCHECKED, {"reward"}),
        (arms.UNIFORM, arms.HRD_05, {"credit"}),
    ],
    ids=lambda value: value.name if isinstance(value, Run) else "",
)
@pytest.mark.parametrize("preset", arms.PRESETS)
def test_arms_differ_in_what_they_are_about_at_every_scale(one: Run, other: Run, fields: set[str], preset: str) -> None:
    a, b = (to_json(arms.PRESETS[preset].adapt(run)) for run in (one, other))
    differing = {key for key in a if a[key] != b[key]} - {"name"}
    assert differing == fields


def test_a_step_of_one_turn_and_of_other_groups_sees_as_many_answers() -> None:
    def answers(run: Run) -> int:
        return run.prompts_per_step * run.rollouts * run.turns

    assert {answers(run) for run in (arms.GRPO_SINGLE_TURN, arms.GRPO_ARM, *arms.K4.values(), *arms.K16.values())} == {192}


@pytest.mark.parametrize("preset", arms.PRESETS)
def test_nothing_takes_a_factor_out_of_plain_descent_at_any_scale(preset: str) -> None:
    runs = [arms.PRESETS[preset].adapt(run) for run in arms.SGD.values()]
    # A clipped gradient has the same length whatever multiplies it.
    assert {(run.optimiser.rule, run.max_grad_norm) for run in runs} == {("sgd", 0.0)}
    assert arms.PRESETS[preset].adapt(arms.TRLOO_ARM).max_grad_norm == 1.0


def test_paper_scale_has_the_papers_numbers_and_an_estimate_that_says_so() -> None:
    run = arms.PRESETS["paper"].adapt(arms.TRLOO_ARM)
    batch = (run.prompts_per_step, run.rollouts, run.turns, run.max_new_tokens, run.learning_rate)
    assert batch == (16, 16, 3, 8192, 1e-6) and (run.loss.clip_low, run.loss.clip_high) == (0.2, 0.28)
    assert run.model == "Qwen/Qwen3-14B-Base" and arms.PRESETS["paper"].adapt(arms.HRD_01).model == "Qwen/Qwen3-8B-Base"
    # By hand, 14B: 40 * (5120 * 128 * 2 * 48 + 3 * 5120 * 17408) + 2 * 151936 * 5120 = 14.77e9.
    assert paper_scale.SHAPES[run.model].parameters == pytest.approx(14.77e9, rel=1e-3)
    assert paper_scale.SHAPES["Qwen/Qwen3-8B-Base"].parameters == pytest.approx(8.19e9, rel=1e-3)
    text = paper_scale.estimate(run)
    assert text.startswith("estimate, not measured: 14.8B parameters need 89 GB")
    assert paper_scale.estimate(replace(run, model="x/y")).startswith("no estimate for x/y")


@pytest.fixture
def model(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> str:
    tiny_model.config.max_position_embeddings = 4096  # the tokenizer has hardly any merges, so prompts are long
    tiny_model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def few(one: experiment.Experiment) -> experiment.Experiment:
    """Its first and last arm, but for one that holds out what the cpu preset has not, and those claims about them that the
    preset's problems can decide, with three training problems, one for validation, an eighth of the prompts and at most two
    turns."""
    ends = [next(iter(one.arms)), [arm for arm in one.arms if arm != arms.WITHOUT_PRODUCTS.name][-1]]
    split = {name: [p for p in arms.BASE.problems if p.split == name] for name in ("train", "validation")}
    problems = (*split["train"][:3], *split["validation"][:1])
    of_ends = (claim for claim in one.story.claims if {claim.better, claim.worse} <= set(ends))
    claims = tuple(claim for claim in of_ends if claim.metric != "oracle_fraction" and not claim.among)
    return replace(
        one,
        story=replace(one.story, claims=claims),
        arms={
            arm: replace(run, problems=problems, turns=min(run.turns, 2), prompts_per_step=max(1, run.prompts_per_step // 8))
            for arm in ends
            for run in [one.arms[arm]]
        },
    )


@pytest.mark.slow
def test_every_experiment_runs_reports_and_shares_its_arms(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, experiments = tmp_path / "out", [few(one) for one in EXPERIMENTS]
    argv = [*TINY, "--out", str(out), "--model", model]
    assert everything.main(argv, experiments) == 0
    printed = capsys.readouterr().out
    # One seed has no interval.
    assert printed.count("\nunclear: ") == sum(len(one.story.claims) for one in experiments) > 0
    manifests = [json.loads(path.read_text()) for path in out.glob("arms/*/manifest.json")]
    names = {arm for one in experiments for arm in one.arms}
    assert sorted(manifest["arm"] for manifest in manifests) == sorted(names)
    assert all("finished" in manifest for manifest in manifests)

    assert all((out / one.name / name).exists() for one in experiments for name in ("report.html", "figure.png"))

    # An experiment's own command finds them finished.
    written = {path: path.read_bytes() for path in out.glob("arms/*/*.json*")}
    (out / "full_recipe" / "report.html").unlink()
    assert experiment.main(next(one for one in experiments if one.name == "full_recipe"), argv) == 0
    assert (out / "full_recipe" / "report.html").exists()
    assert {path: path.read_bytes() for path in written} == written


@pytest.mark.slow
def test_paper_scale_is_rehearsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(paper_scale, "RUNS", tmp_path)
    argv = ["trloo_mrs_pr_prs", "--preset", "paper", "--dry-run", "--out", str(tmp_path)]
    assert experiment.main(load("full_recipe"), argv) == 0
    assert "one step of random weights at reduced size went through\n  estimate, not measured" in capsys.readouterr().out
    (manifest,) = (json.loads(path.read_text()) for path in tmp_path.glob("rehearsals/trloo_mrs_pr_prs-*/manifest.json"))
    assert manifest["run"]["loss"]["clip_high"] == 0.28 and manifest["run"]["learning_rate"] == 1e-6


def test_presets_do_not_level_arms() -> None:
    for one in EXPERIMENTS:
        for preset in one.presets.values():
            assert len(plan(one.arms, Flags(seeds=(0,)), preset)) == len(one.arms)
