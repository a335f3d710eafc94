"""From a command line to runs, directories and a report, with a scripted trainer."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlkernel.commands.asked import Flags
from rlkernel.commands.experiment import main
from rlkernel.commands.plan import plan
from rlkernel.config import Run
from rlkernel.errors import GOES_ON
from rlkernel.report.claims import Claim
from rlkernel.report.report import Story
from rlkernel.report.summary import Window
from rlkernel.runs import directory as rundir
from tests.commands.scripted_training import ARMS, BASE, PRESETS, TRLOO, ScriptedTraining, experiment


def run_main(argv: Sequence[str], training: Any) -> int:
    # Named, because the default depends on the machine.
    return main(experiment(), [*argv, *([] if "--preset" in argv else ["--preset", "cpu"])], train=training)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["nothing"], "unknown arm 'nothing': choose from grpo, trloo"),
        (["--bogus", "3"], "--bogus"),
        (["--steps", "many"], "--steps"),
        (["--advantage.std", "no"], "--advantage.std"),
        (["--advantage", "grpo"], "--advantage"),
        (["--reward.cap", "5"], "--reward.cap"),
        (["--corrections", "mrs"], "--corrections"),
        (["--credit", "hrd"], "--credit"),
        (["--gamma", "0.5"], "--gamma"),
        (["--clip-low", "0.1"], "--clip-low"),
        (["--temperature", "2"], "--temperature"),
        (["gpro"], "unknown arm 'gpro'; perhaps you meant grpo: choose from grpo, trloo"),
        (["--seeds"], "--seeds is empty"),
        (["--seeds", "0", "0", "--list"], "--seeds 0 0: a seed is there twice; give each once"),
        (["--style", "foo"], "--style foo: give one of short, full, given, kernelgym (see"),
        (["--seeds", "a"], "error: --seeds a: give a whole number (see python -m experiments.estimators --help)\n"),
        (["--steps=many", "--seeds", "1"], "error: --steps many: give a whole number (see"),
        (["--limit-seconds", "soon"], "error: --limit-seconds soon: give a number (see"),
        (["--prompts_per_step", "two"], "error: --prompts-per-step two: give a whole number (see"),
        (["--prompts_per_step=two", "--steps", "1"], "error: --prompts-per-step two: give a whole number (see"),
        (["--rollouts", "1"], "--rollouts 1: a group needs"),
        (["--steps", "0"], "--steps 0: "),
        (["--learning-rate", "-1"], "--learning-rate -1.0: "),
        (["--seeds", "-1"], "--seeds -1: use a number from 0"),
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


def test_a_place_that_cannot_be_made_is_told_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    training = ScriptedTraining()
    assert run_main(["--out", str(tmp_path / "file")], training) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == f"error: {tmp_path}/file/arms cannot be made (Not a directory): choose another directory with --out"
    assert not training.jobs


def test_a_single_arm_is_listed_by_what_differs_from_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main(["trloo", "--list"], ScriptedTraining()) == 0
    listed = capsys.readouterr().out
    assert "advantage = TRLOO" in listed and "differs in nothing" not in listed
    assert not any(line.startswith("grpo ") for line in listed.splitlines())


def test_a_run_that_another_process_holds_is_told_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = plan(ARMS, Flags(out=tmp_path), PRESETS["cpu"])
    run, last = jobs[-1]
    training = ScriptedTraining()
    with rundir.owned(last):
        assert run_main(["--out", str(tmp_path)], training) == 2
        assert capsys.readouterr().err.splitlines()[-1] == (
            f"error: {last} is in use by another process: wait for it, or choose another with --out"
        )
    assert not training.jobs
    rundir.begin(last, run)
    rundir.finish(last)
    with rundir.owned(last):  # of a run that is finished nothing is needed
        assert run_main(["--out", str(tmp_path)], training) == 0
    assert len(training.jobs) == len(jobs)


def test_finished_runs_are_reported_with_the_first_arm_as_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training = ScriptedTraining()
    assert run_main(["--out", str(tmp_path)], training) == 0
    assert training.cache == tmp_path / "evaluations"
    printed = capsys.readouterr().out
    # Rewards: grpo 1 and 2, trloo 2 and 3; seed by seed the difference is 1 and 1, which has no spread to judge chance by.
    first = "trloo against grpo in reward: not decided by 2 seeds (difference +1.00, interval +1.00 to +1.00)."
    assert printed.splitlines()[0] == first
    assert "1.50 → 1.50 ± 0.50" in printed
    assert any(line.startswith("trloo - grpo") and "+1.00" in line for line in printed.splitlines())
    assert any(line.startswith("  95 % interval") and "[+1.00, +1.00]" in line for line in printed.splitlines())
    assert "The claim." in (tmp_path / "estimators" / "report.html").read_text()
    assert (tmp_path / "estimators" / "figure.png").stat().st_size > 10_000


def test_a_finished_run_of_other_training_code_is_reported_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    training = ScriptedTraining()
    assert run_main(["--out", str(tmp_path)], training) == 0
    assert "other code" not in capsys.readouterr().err
    place = training.jobs[0][1]
    manifest = rundir.read_manifest(place)
    assert manifest is not None
    rundir.update_manifest(place, training_code={**manifest["training_code"], "training/batch.py": "0" * 16})
    assert run_main(["--out", str(tmp_path)], training) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert warnings == [
        f"warning: {place} was trained by other code than is here now (training/batch.py of rlkernel): delete it to train anew"
    ]


def test_claims_fit_the_width_and_those_of_other_arms_share_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claims = (
        Claim(f"TRLOO is above GRPO {'by far ' * 12}in reward", "trloo", "grpo", "reward", "", window=Window(last=1)),
        Claim("No such metric", "trloo", "grpo", "nothing", "", after_look=True),
        Claim("RLOO is above GRPO", "rloo", "grpo", "reward", ""),
        Claim("RLOO is above MaxRL", "rloo", "max_rl", "reward", ""),
    )
    others = {name: replace(BASE, name=name, gamma=gamma) for name, gamma in (("rloo", 0.5), ("max_rl", 0.6))}
    own = replace(experiment({**ARMS, **others}), story=Story("Estimators", "The claim.", claims))
    assert main(own, ["grpo", "trloo", "--out", str(tmp_path), "--preset", "cpu"], train=ScriptedTraining()) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("unclear: TRLOO is above GRPO"))
    assert lines[at + 1].endswith("in reward (all seeds differ by the same, which says nothing about chance)")
    assert lines[at + 1].startswith("  by far")
    marked = "No such metric (added after a look)"
    assert lines[at + 2].startswith(f"no finished runs: {marked} (no seed has finished in both arms")
    assert marked in (tmp_path / "estimators" / "report.html").read_text()
    assert lines[at + 3] == "2 more claims need rloo, max_rl"
    assert max(map(len, lines[:-1])) <= 100  # the last is the page's path


def test_a_command_for_fewer_arms_keeps_the_finished_runs_of_the_others_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def finished(argv: list[str], *, ended: bool = True) -> tuple[list[str], str]:
        """The arms and seeds of the report, and what was said."""
        training = ScriptedTraining()
        assert run_main([*argv, "--out", str(tmp_path)], training) == 0
        for _, directory in training.jobs if ended else ():
            rundir.finish(directory)
        named = json.loads((tmp_path / "estimators" / "runs.json").read_text())
        return [Path(name).name.rpartition("-")[0] for name in named], capsys.readouterr().err

    assert finished(["--seeds", "0", "--steps", "9"])[0] == ["grpo-seed0", "trloo-seed0"]
    assert finished(["--seeds", "7"], ended=False)[0] == ["grpo-seed7", "trloo-seed7"]
    assert finished([])[0] == ["grpo-seed0", "grpo-seed1", "trloo-seed0", "trloo-seed1"]
    arms, said = finished(["trloo", "--seeds", "1", "5"])
    # Those of nine steps are of another size, and those of seed 7 are not finished.
    assert arms == ["grpo-seed0", "grpo-seed1", "trloo-seed0", "trloo-seed1", "trloo-seed5"]
    assert said.splitlines()[1:] == ["the report also has finished runs that were here: grpo (seed 0, 1), trloo (seed 0)"]


def test_finished_runs_from_other_weights_are_left_out_of_a_report_of_new_seeds(tmp_path: Path) -> None:
    """The report comes after hours of training."""
    weights = tmp_path / "policy" / "model.safetensors"
    weights.parent.mkdir()
    argv = ["--model", str(weights.parent), "--out", str(tmp_path / "out"), "--seeds"]
    for content, seed in ((b"one", "0"), (b"two", "1")):
        weights.write_bytes(content)
        training = ScriptedTraining()
        assert run_main([*argv, seed], training) == 0
        for _, directory in training.jobs:
            rundir.finish(directory)
        named = json.loads((tmp_path / "out" / "estimators" / "runs.json").read_text())
        assert [Path(name).name.rpartition("-")[0] for name in named] == [f"grpo-seed{seed}", f"trloo-seed{seed}"]


@pytest.mark.parametrize("status", [2, 130])
def test_an_unfinished_training_is_not_reported_and_keeps_its_status(tmp_path: Path, status: int) -> None:
    assert run_main(["--out", str(tmp_path)], ScriptedTraining(status)) == status
    assert not (tmp_path / "estimators").exists()


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


def test_a_preset_that_needs_a_gpu_is_refused_without_one_and_rehearsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rlkernel.commands.plan.gpus.select", lambda device: ())
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


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("cuda", "no NVIDIA GPU was found"),
        ("cuda:7", "no NVIDIA GPU was found"),
        ("gpu", "device 'gpu' is unknown: use auto, cpu"),
    ],
)
def test_a_device_that_is_not_there_is_refused_before_anything_is_loaded(
    device: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rlkernel.evaluator.cards.gpus.find", lambda: ())
    training = ScriptedTraining()
    assert run_main(["--device", device, "--out", str(tmp_path)], training) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: --device: device '{device}'") and said in error and error.count("\n") == 1
    assert not training.jobs and not any(tmp_path.iterdir())
    assert run_main(["--device", "ray", "--out", str(tmp_path)], training) == 0


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
    """The trainer is told when; that it stops there and goes on is shown in tests/training/test_loop.py."""
    stopped = ScriptedTraining(GOES_ON)
    before = time.monotonic()
    assert run_main(["--out", str(tmp_path), "--limit-seconds", "1000"], stopped) == GOES_ON
    assert stopped.until is not None and before + 1000 <= stopped.until <= time.monotonic() + 1000
    assert capsys.readouterr().err.endswith("stopped after 1000 s at a checkpoint: the same command goes on\n")
    assert not (tmp_path / "estimators").exists()
    going_on = ScriptedTraining()
    assert run_main(["--out", str(tmp_path)], going_on) == 0
    assert (going_on.until, going_on.jobs) == (None, stopped.jobs)
