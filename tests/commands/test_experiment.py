"""From a command line to runs, directories and a report, with a scripted trainer."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from algorithms import TABLES
from algorithms.grpo import GRPO
from algorithms.speed_reward import SpeedReward
from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from envs.kernel_env import KernelEnvironment
from experiments.catalogue import NAMES, load
from rlkernel.commands.deadline import GOES_ON, progress
from rlkernel.commands.experiment import OVERRIDES, Experiment, Flags, Preset, cost, main, parse, plan
from rlkernel.config import METHODS, Run
from rlkernel.errors import UsageError
from rlkernel.report.claims import Claim
from rlkernel.report.report import Story
from rlkernel.report.summary import Window
from rlkernel.runs import directory as rundir
from rlkernel.types import Problem

PROBLEMS = (Problem("level1/relu", 1, "train", ""), *(Problem(f"level1/held{i}", 1, "validation", "") for i in range(3)))
BASE = Run("grpo", PROBLEMS, KernelEnvironment(), SpeedReward(), GRPO(), UniformCredit())
ARMS = {"grpo": BASE, "trloo": replace(BASE, name="trloo", advantage=TRLOO())}


def larger(run: Run) -> Run:
    return replace(run, max_new_tokens=4096, learning_rate=1e-6)


CPU = Preset("small", lambda run: run, seeds=(0, 1))
PRESETS = {
    "cpu": CPU,
    "paper": Preset(
        "large", larger, (0,), gpu=True, estimate=lambda run: f"an estimate: {run.max_new_tokens}", rehearse=CPU.adapt
    ),
}


def experiment(arms: dict[str, Run] | None = None, sharing: dict[str, tuple[str, ...]] | None = None) -> Experiment:
    story = Story("Estimators", "The claim.")
    return Experiment("estimators", arms or ARMS, PRESETS, story, TABLES, lambda: sharing or {})


@dataclass
class ScriptedTraining:
    """Writes what a finished run leaves, with reward seed + 1 for grpo and seed + 2 for trloo."""

    status: int = 0
    jobs: list[tuple[Run, Path]] = field(default_factory=list)
    cache: Path | None = None
    checkpoint_every: int = 0

    def __call__(self, jobs: Sequence[tuple[Run, Path]], *, cache_dir: Path, checkpoint_every: int) -> int:
        self.jobs, self.cache, self.checkpoint_every = list(jobs), cache_dir, checkpoint_every
        for run, directory in jobs:
            directory.mkdir(parents=True, exist_ok=True)
            rundir.begin(directory, run)
            rundir.update_manifest(directory, timing="modelled")
            reward = run.seed + 1.0 + (run.name == "trloo")
            shares = {
                "fast_1": 0.5,
                "fast_1.2": 0.25,
                "fast_1_turn_1": 0.5,
                "fast_1.2_turn_1": 0.25,
                "hacking_rate": 0.0,
                "lazy_rate": 0.0,
            }
            row = {"split": "validation", "step": 0, "reward": reward, **shares}
            (directory / "metrics.jsonl").write_text(json.dumps(row) + "\n")
            (directory / "transcripts.jsonl").write_text("")
        return self.status


def run_main(argv: Sequence[str], training: Any) -> int:
    # Named, because the default depends on the machine.
    return main(experiment(), [*argv, *([] if "--preset" in argv else ["--preset", "cpu"])], train=training)


def test_all_arms_and_seeds_run_seed_by_seed_in_directories_of_their_own() -> None:
    jobs = plan(ARMS, Flags(out=Path("out")), CPU)
    assert [(run.name, run.seed) for run, _ in jobs] == [("grpo", 0), ("trloo", 0), ("grpo", 1), ("trloo", 1)]
    assert len({directory for _, directory in jobs}) == 4
    assert all(directory.parent == Path("out/arms") for _, directory in jobs)


def test_the_same_flags_give_the_same_directory_and_other_flags_another() -> None:
    def directory(**flags: Any) -> Path:
        return plan({"grpo": BASE}, Flags(seeds=(0,), **flags), CPU)[0][1]

    assert directory() == directory()
    assert directory(steps=5) == directory(steps=5)
    assert len({directory(), directory(steps=5), directory(steps=6)}) == 3


def test_flags_change_the_run_and_nothing_else_does() -> None:
    ((run, _),) = plan({"grpo": BASE}, Flags(seeds=(3,), steps=7, rollouts=2), CPU)
    assert run == replace(BASE, seed=3, steps=7, rollouts=2)


def test_a_preset_brings_its_own_sizes_which_flags_override() -> None:
    ((run, _),) = plan({"grpo": BASE}, Flags(model="some/model", learning_rate=2e-6), PRESETS["paper"])
    assert (run.model, run.max_new_tokens, run.learning_rate, run.seed) == ("some/model", 4096, 2e-6, 0)


def test_arms_come_first_and_none_means_all() -> None:
    assert parse("x", ARMS, [])[0] == ("grpo", "trloo")
    assert parse("x", ARMS, ["trloo", "--steps", "3"]) == (("trloo",), Flags(steps=3))
    assert parse("x", ARMS, ["trloo", "grpo", "trloo"])[0] == ("trloo", "grpo")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["nothing"], "unknown arm 'nothing': choose from grpo, trloo"),
        (["--bogus", "3"], "--bogus"),
        (["--steps", "many"], "--steps"),
        (["--advantage.std", "no"], "--advantage.std"),
        (["--advantage", "grpo"], "--advantage"),
        (["--reward.cap", "5"], "--reward.cap"),
        (["--rejections", "mrs"], "--rejections"),
        (["--credit", "hrd"], "--credit"),
        (["--gamma", "0.5"], "--gamma"),
        (["--clip-low", "0.1"], "--clip-low"),
        (["--temperature", "2"], "--temperature"),
        (["--seeds"], "--seeds is empty"),
        (["--seeds", "a"], "error: --seeds a: give whole numbers (see python -m experiments.estimators [arm ...] --help)\n"),
        (["--steps=many", "--seeds", "1"], "error: --steps many: give a whole number (see"),
        (["--limit-seconds", "soon"], "error: --limit-seconds soon: give a number (see"),
        (["--prompts_per_step", "two"], "error: --prompts_per_step two: give a whole number (see"),
        (["--prompts_per_step=two", "--steps", "1"], "error: --prompts_per_step two: give a whole number (see"),
        (["--rollouts", "1"], "Run.rollouts is 1"),
        (["--preset", "huge"], "--preset huge: choose from cpu, paper"),
        (["--dry-run"], "--dry-run is for presets that may not fit this machine (paper)"),
        (["--limit-seconds", "0"], "--limit-seconds 0: give a positive number"),
    ],
)
def test_what_is_unusable_is_one_line_and_exit_2(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    training = ScriptedTraining()
    assert run_main(argv, training) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not training.jobs


def test_finished_runs_are_reported_with_the_first_arm_as_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training = ScriptedTraining()
    assert run_main(["--out", str(tmp_path)], training) == 0
    assert training.cache == tmp_path / "evaluations"
    printed = capsys.readouterr().out
    # Rewards: grpo 1 and 2, trloo 2 and 3; seed by seed the difference is 1 and 1.
    assert "1.50 → 1.50 ± 0.50" in printed
    assert any(line.startswith("trloo - grpo") and "+1.00" in line for line in printed.splitlines())
    assert any(line.startswith("  95 % interval") and "[+1.00, +1.00]" in line for line in printed.splitlines())
    assert "The claim." in (tmp_path / "estimators" / "report.html").read_text()
    assert (tmp_path / "estimators" / "figure.png").stat().st_size > 10_000


def test_claims_fit_the_width_and_those_of_other_arms_share_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claims = (
        Claim(f"TRLOO is above GRPO {'by far ' * 12}in reward", "trloo", "grpo", "reward", "", window=Window(last=1)),
        Claim("No such metric", "trloo", "grpo", "nothing", ""),
        Claim("RLOO is above GRPO", "rloo", "grpo", "reward", ""),
        Claim("RLOO is above MaxRL", "rloo", "max_rl", "reward", ""),
    )
    others = {name: replace(BASE, name=name, gamma=gamma) for name, gamma in (("rloo", 0.5), ("max_rl", 0.6))}
    own = replace(experiment({**ARMS, **others}), story=Story("Estimators", "The claim.", claims))
    assert main(own, ["grpo", "trloo", "--out", str(tmp_path), "--preset", "cpu"], train=ScriptedTraining()) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("reproduced: TRLOO is above GRPO"))
    assert lines[at + 1].endswith("in reward (the interval lies above 0)") and lines[at + 1].startswith("  far by far")
    assert lines[at + 2].startswith("no finished runs: No such metric (no seed has finished in both arms, or the metric")
    assert lines[at + 3] == "2 more claims need rloo, max_rl"
    assert max(map(len, lines[:-1])) <= 100  # the last is the page's path


@pytest.mark.parametrize("status", [2, 130])
def test_an_unfinished_training_is_not_reported_and_keeps_its_status(tmp_path: Path, status: int) -> None:
    assert run_main(["--out", str(tmp_path)], ScriptedTraining(status)) == status
    assert not (tmp_path / "estimators").exists()


def test_list_shows_what_differs_and_trains_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    training = ScriptedTraining()
    assert run_main(["--list"], training) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == ["arm", "grpo", "trloo"]
    grpo, trloo = (" ".join(lines[i + 1].split()) for i, line in enumerate(lines) if line.startswith(("grpo", "trloo")))
    assert grpo == "advantage = GRPO(std=True, ddof=1, eps=1e-06, baseline=turn)"
    assert trloo == "advantage = TRLOO(singleton=return)"
    assert max(map(len, lines)) <= 100
    assert not training.jobs


def test_the_list_has_of_each_arm_what_the_first_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    arms = {**ARMS, "longer": replace(BASE, name="longer", gamma=0.5)}
    assert main(experiment(arms, {"trloo": ("a_long_name",) * 12}), ["--list", "--preset", "cpu"], train=ScriptedTraining()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split() == ["gamma", "=", "0.5"]  # and not the advantage, which is the first's
    assert sum("a_long_name" in line for line in lines) == 3 and max(map(len, lines)) <= 100


def test_every_experiment_is_listed_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    for name in NAMES:
        assert main(load(name), ["--list", "--preset", "cpu"]) == 0
        assert len(capsys.readouterr().out.splitlines()) <= 40


def test_the_registered_methods_have_a_list_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main(["--methods"], ScriptedTraining()) == 0
    lines = capsys.readouterr().out.splitlines()
    for kind, classes in TABLES.items():
        for name, cls in classes.items():
            assert any(line.split()[:2] == [kind, name] and f" {cls.__name__}(" in line for line in lines), name
    assert max(map(len, lines)) <= 100


def test_no_flag_reaches_the_algorithm() -> None:
    assert not {*METHODS, "gamma", "environment", "temperature", "clip_low", "clip_high"} & set(OVERRIDES)


@pytest.mark.parametrize(
    ("arms", "argv", "said"),
    [
        ({"grpo": BASE, "same": replace(BASE, name="same", seed=5)}, [], "arms 'grpo' and 'same' differ in nothing"),
        (
            {"grpo": BASE, "same": replace(BASE, name="same", steps=9)},
            ["--steps", "3"],
            "arms 'grpo' and 'same' differ in nothing",
        ),
        ({"grpo": BASE, "trloo": replace(BASE, advantage=TRLOO())}, [], "arm 'trloo' holds a run named 'grpo'"),
    ],
)
def test_arms_that_are_not_a_comparison_are_refused(
    arms: dict[str, Run], argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    training = ScriptedTraining()
    assert main(experiment(arms), [*argv, "--preset", "cpu"], train=training) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not training.jobs


def test_arms_that_flags_would_level_can_be_run_alone(tmp_path: Path) -> None:
    arms = {"grpo": BASE, "short": replace(BASE, name="short", steps=9)}
    training = ScriptedTraining()
    argv = ["short", "--steps", "3", "--out", str(tmp_path)]
    assert main(experiment(arms), [*argv, "--preset", "cpu"], train=training) == 0
    assert [run.name for run, _ in training.jobs] == ["short", "short"]


def test_cost_counts_every_answer() -> None:
    run = replace(BASE, steps=7, prompts_per_step=1, rollouts=4, turns=3, validation_every=5, validation_rollouts=2)
    # Training 7 * 1 * 4 = 28; measurements after 0, 5 and 7 steps of 3 problems x 2: 18; three turns each.
    assert cost(run) == 3 * (28 + 18)


def test_an_unknown_arm_is_refused_before_flags_are_read() -> None:
    with pytest.raises(UsageError, match="unknown arm 'x'"):
        parse("name", ARMS, ["x", "--bogus"])


def test_list_says_who_shares_an_arm_and_what_a_preset_needs(capsys: pytest.CaptureFixture[str]) -> None:
    shared = experiment(sharing={"trloo": ("reward_hacking",)})
    assert main(shared, ["--list", "--preset", "paper"], train=ScriptedTraining()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("trloo") and line.split()[-1] == "reward_hacking" for line in lines)
    assert any(line.startswith("grpo") and line.split()[-1] == "-" for line in lines)
    assert lines[-1] == "grpo, trloo: an estimate: 4096"


def test_a_preset_that_needs_a_gpu_is_refused_without_one_and_rehearsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rlkernel.commands.experiment.gpus.select", lambda device: ())
    training = ScriptedTraining()
    argv = ["--preset", "paper", "--out", str(tmp_path)]
    assert run_main(argv, training) == 2
    assert "grpo is not finished, its preset needs a GPU" in capsys.readouterr().err
    assert not training.jobs
    assert run_main([*argv, "--dry-run"], training) == 0
    assert [run.name for run, _ in training.jobs] == ["grpo", "trloo"]
    assert all(directory.parent == tmp_path / "rehearsals" for _, directory in training.jobs)
    printed = capsys.readouterr().out
    assert "trloo: one step of random weights at reduced size went through\n  an estimate: 4096" in printed

    # What another machine has finished is reported here.
    jobs = plan(ARMS, Flags(out=tmp_path, preset="paper"), PRESETS["paper"])
    ScriptedTraining()(jobs, cache_dir=tmp_path, checkpoint_every=1)
    for _, directory in jobs:
        rundir.finish(directory)
    assert run_main(argv, lambda jobs, **_: 0) == 0
    assert (tmp_path / "estimators" / "report.html").exists()


def test_a_claim_about_an_arm_that_is_not_there_is_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    story = Story("", "", (Claim("medians learn more", "medain", "grpo", "reward", ""),), ())
    assert main(replace(experiment(), story=story), ["--list", "--preset", "cpu"]) == 2
    assert "'medain', which is no arm here: choose from grpo, trloo" in capsys.readouterr().err


def test_checkpoints_are_as_rare_as_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training = ScriptedTraining()
    assert run_main(["--out", str(tmp_path), "--checkpoint-every", "5"], training) == 0
    assert training.checkpoint_every == 5
    assert run_main(["--out", str(tmp_path), "--checkpoint-every", "0"], training) == 2
    assert "--checkpoint-every 0: at least 1" in capsys.readouterr().err


def test_at_the_limit_the_next_checkpoint_stops_the_command_which_goes_on_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handled = threading.Event()

    def training(jobs: Sequence[tuple[Run, Path]], *, cache_dir: Path, checkpoint_every: int) -> int:
        """Saves checkpoints of the first run until the signal comes, as the loop would get it."""
        before = signal.signal(signal.SIGTERM, lambda *_: handled.set())
        try:
            run, directory = jobs[0]
            directory.mkdir(parents=True)
            rundir.begin(directory, run)
            for step in range(1, run.steps):
                checkpoint = directory / "checkpoints" / f"checkpoint-{step}"
                checkpoint.mkdir(parents=True)
                (checkpoint / rundir.COMPLETE).touch()
                if handled.wait(1):
                    break
            assert handled.is_set()
        finally:
            signal.signal(signal.SIGTERM, before)
        raise KeyboardInterrupt

    assert run_main(["--out", str(tmp_path), "--limit-seconds", "0.01"], training) == GOES_ON
    assert "the same command goes on" in capsys.readouterr().err


def test_progress_leaves_out_what_is_saved_but_not_marked_as_finished(tmp_path: Path) -> None:
    run = replace(BASE, steps=2)
    assert progress(run, tmp_path) == -1
    rundir.begin(tmp_path, run)
    for step, complete in ((1, True), (2, True), (3, False)):
        checkpoint = tmp_path / "checkpoints" / f"checkpoint-{step}"
        checkpoint.mkdir(parents=True)
        if complete:
            (checkpoint / rundir.COMPLETE).touch()
    assert progress(run, tmp_path) == 1
    rundir.finish(tmp_path)
    assert progress(run, tmp_path) == 2
