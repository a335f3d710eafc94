"""Whose a directory is, where a run goes on, and what of its rows is kept."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from algorithms.grpo import GRPO
from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.config import Run, fingerprint
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import UsageError
from rlkernel.runs import checkpoints
from rlkernel.runs import directory as rundir
from rlkernel.runs.directory import Start
from rlkernel.types import Problem

RUN = Run("trloo", (Problem("p", 1, "train", ""),), KernelEnvironment(), SpeedReward(), TRLOO(), UniformCredit(), steps=5)


def test_a_new_directory_gets_a_manifest_that_says_what_runs(tmp_path: Path) -> None:
    assert rundir.begin(tmp_path, RUN) == Start(0, None, finished=False)
    manifest = rundir.read_manifest(tmp_path)
    assert manifest is not None
    assert (manifest["arm"], manifest["seed"], manifest["timing"], manifest["fingerprint"]) == (
        "trloo",
        0,
        None,
        fingerprint(RUN),
    )
    assert manifest["run"]["steps"] == 5
    assert set(manifest["code"]) >= {"algorithms.trloo.TRLOO", "rlkernel.environment.speed_reward.SpeedReward"}
    assert {"python", "torch", "triton", "trl"} <= set(manifest["versions"])
    assert not rundir.finished(tmp_path, RUN)
    rundir.finish(tmp_path)
    assert rundir.finished(tmp_path, RUN)
    assert rundir.begin(tmp_path, RUN) == Start(5, None, finished=True)


def test_a_run_whose_training_code_has_changed_goes_on_with_a_line_and_a_note(tmp_path: Path) -> None:
    assert rundir.begin(tmp_path, RUN).told == ()
    assert rundir.begin(tmp_path, RUN).told == ()
    manifest = rundir.read_manifest(tmp_path)
    assert manifest is not None
    rundir.update_manifest(tmp_path, training_code={**manifest["training_code"], "training/loss_trainer.py": "0" * 16})
    assert rundir.begin(tmp_path, RUN).told == (
        f"warning: {tmp_path} goes on, but began with other code than is here now (training/loss_trainer.py of rlkernel): delete "
        "it to train anew",
    )
    starts = rundir.read_manifest(tmp_path)["starts"]  # type: ignore[index]
    assert [start["changed_code"] for start in starts] == [[], [], ["training/loss_trainer.py"]]
    # A manifest of before there were digests says nothing of them.
    rundir.update_manifest(tmp_path, training_code=None)
    assert rundir.begin(tmp_path, RUN).told == ()


def test_a_run_goes_on_from_its_last_complete_checkpoint_without_the_rows_after_it(tmp_path: Path) -> None:
    rundir.begin(tmp_path, RUN)
    for step in (2, 3, 4):
        (tmp_path / "checkpoints" / f"checkpoint-{step}").mkdir(parents=True)
    for step in (2, 3):
        (tmp_path / "checkpoints" / f"checkpoint-{step}" / checkpoints.COMPLETE).touch()
    rows = [json.dumps({"split": "train", "step": step}) + "\n" for step in range(5)]
    for name in (rundir.METRICS, rundir.TRANSCRIPTS, rundir.OUTCOMES):
        (tmp_path / name).write_text("".join(rows) + '{"split": "tr')  # cut off by a kill
    assert rundir.begin(tmp_path, RUN) == Start(3, tmp_path / "checkpoints" / "checkpoint-3", finished=False)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["checkpoint-2", "checkpoint-3"]
    for name in (rundir.METRICS, rundir.TRANSCRIPTS, rundir.OUTCOMES):
        assert (tmp_path / name).read_text() == "".join(rows[:4])
    starts = rundir.read_manifest(tmp_path)["starts"]  # type: ignore[index]
    assert [start["step"] for start in starts] == [0, 3]
    assert all(start["machine"]["cores"] > 0 and isinstance(start["machine"]["cards"], list) for start in starts)


def test_without_a_checkpoint_even_the_first_measurement_is_made_again(tmp_path: Path) -> None:
    rundir.begin(tmp_path, RUN)
    (tmp_path / rundir.METRICS).write_text('{"split": "validation", "step": 0}\n')
    rundir.begin(tmp_path, RUN)
    assert (tmp_path / rundir.METRICS).read_text() == ""


def test_a_directory_of_another_run_is_refused(tmp_path: Path) -> None:
    rundir.begin(tmp_path, RUN)
    other = replace(RUN, name="grpo", advantage=GRPO())
    for check in (rundir.begin, rundir.finished):
        with pytest.raises(
            UsageError, match=r'holds another run \(name is "trloo" there and "grpo" here; so do advantage\): choose'
        ):
            check(tmp_path, other)
    with pytest.raises(UsageError, match=r"holds another run \(other problems\)"):
        rundir.begin(tmp_path, replace(RUN, problems=(Problem("q", 1, "train", ""),)))


def test_a_run_that_began_from_other_weights_is_refused(tmp_path: Path) -> None:
    model, directory = tmp_path / "policy", tmp_path / "run"
    model.mkdir()
    weights = model / "model.safetensors"
    weights.write_bytes(b"one")
    run = replace(RUN, model=str(model))
    rundir.make(directory)
    rundir.begin(directory, run)
    rundir.finish(directory)
    assert rundir.finished(directory, run)
    weights.write_bytes(b"two")
    said = re.escape(
        f"{directory} holds a run that began from other weights than those in {model} now: choose another directory with --out"
    )
    for check in (rundir.begin, rundir.finished):
        with pytest.raises(UsageError, match=said):
            check(directory, run)
    weights.unlink()
    assert rundir.finished(directory, run), "results stand where the policy is gone"


def test_a_run_of_an_earlier_version_is_refused_in_one_line(tmp_path: Path) -> None:
    manifest = rundir.new_manifest(RUN)
    for name in ("updates", "loss"):
        del manifest["run"][name]
    rundir.write_manifest(tmp_path, {**manifest, "fingerprint": "of then"})
    said = "holds another run (made by an earlier version, without Run.updates, Run.loss): choose another directory with --out"
    with pytest.raises(UsageError, match=re.escape(said)):
        rundir.begin(tmp_path, RUN)


def test_a_directory_that_is_held_for_a_moment_more_is_waited_for(tmp_path: Path) -> None:
    held = rundir.owned(tmp_path / "run")
    held.__enter__()
    threading.Timer(0.3, lambda: held.__exit__(None, None, None)).start()
    begun = time.monotonic()
    with rundir.owned(tmp_path / "run"):
        assert 0.25 < time.monotonic() - begun < rundir.HELD_SECONDS


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    with rundir.owned(tmp_path / "run"), pytest.raises(UsageError, match="in use by another process"):
        with rundir.owned(tmp_path / "run"):
            raise AssertionError("it had two owners")
    with rundir.owned(tmp_path / "run"):
        pass  # it is free again
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be made"), rundir.owned(tmp_path / "file" / "run"):
        raise AssertionError("there is no such directory")


@pytest.mark.parametrize("text", ["{", "[]", '{"run": {}}'])
def test_a_damaged_manifest_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UsageError, match=r"manifest\.json is not a manifest of a run: delete the directory"):
        rundir.begin(tmp_path, RUN)
