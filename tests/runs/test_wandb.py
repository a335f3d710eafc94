"""What goes to Weights & Biases, read back from what its offline mode writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.config import Run
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import UsageError
from rlkernel.runs import wandb_mode
from rlkernel.runs.directory import METRICS, TRANSCRIPTS
from rlkernel.runs.log import RunLog
from rlkernel.runs.wandb import Remote, open_wandb, tags
from rlkernel.types import Completion, Evaluation, Problem, Status, Trajectory, Turn
from tests.runs import wandb_files

PROBLEM = Problem("level1/relu", 1, "validation", "")
RUN = Run("arm", (PROBLEM,), KernelEnvironment(), SpeedReward(), TRLOO(), UniformCredit(), steps=7, seed=3)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)


def trajectory(*turns: tuple[str, str | None, Evaluation, float]) -> Trajectory:
    made = [
        Turn((), Completion((1,), (0.0,), text, "stop"), code, facts, reward, f"told {facts.status}")
        for text, code, facts, reward in turns
    ]
    return Trajectory(PROBLEM, tuple(made))


WRONG = ("I cannot.", None, Evaluation(Status.NO_CODE, "no block"), 0.0)
RIGHT = (
    "Fuse.\n```python\nx = 1\n```",
    "x = 1\n",
    Evaluation(Status.CORRECT, "", speedup=1.5, coverage=0.75, timing="modelled"),
    1.25,
)


def step(log: RunLog, number: int, *splits: str) -> None:
    """What the loop writes at a step."""
    for split in splits:
        log.write_transcripts(split, number, {PROBLEM.name: "Rewrite"}, [trajectory(WRONG, RIGHT)])  # type: ignore[arg-type]
        log.write(split, number, {"reward": number / 10, "mismatch": None})  # type: ignore[arg-type]


def test_rows_and_turns_are_there_once_although_the_run_was_killed_and_went_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "arm-seed3"
    run.mkdir()
    with pytest.raises(KeyboardInterrupt), open_wandb(run, RUN, {"wandb_id": "abcd1234"}) as remote:
        assert remote is not None
        assert (remote.run.id, remote.run.name, remote.run.group, remote.run.offline) == ("abcd1234", "arm-seed3", "arm", True)
        log = RunLog(run, remote)
        step(log, 0, "validation")
        step(log, 1, "train")
        step(log, 2, "train", "validation")
        step(log, 3, "train")
        raise KeyboardInterrupt
    # Of the interrupted run, the turns of its last validation are there, and not all.
    named = [[key for key in row if key.endswith("turns")] for row in wandb_files.history(run)]
    assert named == [["validation/turns"], [], [], ["validation/turns"], []]
    # Step 3 had no checkpoint: what was written of it is dropped and made again.
    for name in (METRICS, TRANSCRIPTS):
        lines = (run / name).read_text().splitlines(keepends=True)
        assert len(lines) == 5
        (run / name).write_text("".join(lines[:4]))
    with open_wandb(run, RUN, {"wandb_id": "abcd1234"}) as remote:
        log = RunLog(run, remote)
        step(log, 3, "train")
        step(log, 4, "train", "validation")
        log.finish()
    assert capfd.readouterr() == ("", "")

    rows = wandb_files.history(run)
    # One step has three places: training, validation, and the end of the run.
    assert [(row["_step"], row["step"]) for row in rows] == [(1, 0), (3, 1), (6, 2), (7, 2), (9, 3), (12, 4), (13, 4), (14, 4)]
    train, validation = {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4}, {0: 0.0, 2: 0.2, 4: 0.4}
    assert {row["step"]: row["train/reward"] for row in rows if "train/reward" in row} == train
    assert {row["step"]: row["validation/reward"] for row in rows if "validation/reward" in row} == validation
    assert not any("mismatch" in key for row in rows for key in row)
    tables = {row["step"]: row["validation/turns"] for row in rows if "validation/turns" in row}
    assert {at: [(turn["step"], turn["split"]) for turn in table] for at, table in tables.items()} == {
        at: [(at, "validation")] * 2 for at in (0, 2, 4)
    }
    (everything,) = [row["turns"] for row in rows if "turns" in row]
    assert [turn["at"] for turn in everything] == [f"arm-seed3:{line}.{k}" for line in range(1, 8) for k in (1, 2)]
    common = {"arm": "arm", "seed": 3, "split": "train", "step": 3, "problem": "level1/relu"}
    assert everything[8:10] == [
        {
            **common, "at": "arm-seed3:5.1", "turn": 1, "status": "no_code", "speedup": None, "timing": "", "coverage": None,
            "reward": 0.0, "plan": "I cannot.", "code": "", "feedback": "told no_code", "detail": "no block",
        },
        {
            **common, "at": "arm-seed3:5.2", "turn": 2, "status": "correct", "speedup": 1.5, "timing": "modelled",
            "coverage": 0.75, "reward": 1.25, "plan": "Fuse.", "code": "x = 1\n", "feedback": "told correct", "detail": "",
        },
    ]  # fmt: skip
    metrics = [json.loads(line) for line in (run / METRICS).read_text().splitlines()]
    assert [(row["split"], row["step"]) for row in metrics if row["split"] == "train"] == [("train", i) for i in (1, 2, 3, 4)]


MANIFEST = {
    "wandb_id": "abcd1234",
    "fingerprint": "0123456789abcdef",
    "git": {"commit": "cafe", "dirty": False},
    "versions": {"torch": "2.13"},
    "machine": {"gpus": []},
    "labels": {"experiment": "mismatch", "preset": "cpu"},
    "evaluator": {"class": "Pool", "device": "cpu"},
    "run": "not told twice",
}


def test_a_run_says_what_it_is_and_the_machine_is_watched(tmp_path: Path) -> None:
    with open_wandb(tmp_path, RUN, MANIFEST) as remote:
        assert remote is not None
        RunLog(tmp_path, remote).write("train", 1, {"reward": 0.5})
        assert not remote.run.settings.x_disable_stats
    config, run = wandb_files.about(tmp_path)
    assert list(run.tags) == ["mismatch", "cpu preset", "modelled", "no GPU"]
    assert (run.job_type, run.run_group, run.display_name) == ("train", "arm", "arm-seed3")
    told = {key: value for key, value in MANIFEST.items() if key not in ("wandb_id", "run")}
    assert {key: config[key] for key in told} == told
    assert (config["timing"], config["name"], config["seed"], config["advantage"]["class"]) == ("modelled", "arm", 3, "TRLOO")


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        ({"wandb_id": "a"}, []),
        ({"machine": {"gpus": ["NVIDIA H200"] * 2}, "evaluator": {"device": "NVIDIA H200 GPU-1"}}, ["measured", "NVIDIA H200"]),
        ({"machine": {"gpus": ["NVIDIA H200"]}, "evaluator": {"device": "cpu"}}, ["modelled", "NVIDIA H200"]),
        ({"labels": {"experiment": "x" * 80}, "evaluator": {"class": "Scripted"}}, ["x" * 64]),
    ],
)
def test_tags_are_what_is_known(manifest: dict[str, Any], found: list[str]) -> None:
    assert tags(manifest) == found


@dataclass
class Server:
    """A run that was resumed online, of which W&B has what lies before `step`."""

    step: int
    sent: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    finished: int = 0

    def define_metric(self, name: str, *, step_metric: str) -> None:
        assert (name, step_metric) == ("*", "step")

    def finish(self) -> None:
        self.finished += 1

    def log(self, row: Mapping[str, Any], *, step: int, commit: bool) -> None:
        assert commit and step >= self.step
        self.sent.append((step, dict(row)))
        self.step = step + 1


def test_online_what_is_known_is_left_out_and_what_a_kill_took_is_sent(tmp_path: Path) -> None:
    rows = [("validation", 0), ("train", 1), ("train", 2), ("validation", 2)]
    lines = [json.dumps({"split": split, "step": at, "reward": 0.5}) + "\n" for split, at in rows]
    (tmp_path / METRICS).write_text("".join(lines))
    server = Server(step=6)  # the training row of step 1 was the last that arrived
    remote = Remote(server, tmp_path, "arm", 0)  # type: ignore[arg-type]
    remote.again()
    assert server.sent == [(6, {"step": 2, "train/reward": 0.5}), (7, {"step": 2, "validation/reward": 0.5})]
    # Of a run that was further than its last checkpoint, everything is known until it is there again.
    ahead = Server(step=13)
    remote = Remote(ahead, tmp_path, "arm", 0)  # type: ignore[arg-type]
    remote.again()
    remote.row("train", 4, {"reward": 0.5})
    assert ahead.sent == []
    remote.row("train", 5, {"reward": 0.75})
    assert ahead.sent == [(15, {"step": 5, "train/reward": 0.75})]


def test_online_the_validation_in_which_a_run_was_interrupted_is_sent_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(step=0)
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setattr(wandb_mode, "unreachable", lambda: None)
    monkeypatch.setattr("wandb.init", lambda **_: server)
    with pytest.raises(KeyboardInterrupt), open_wandb(tmp_path, RUN, {"wandb_id": "abcd1234"}) as remote:
        log = RunLog(tmp_path, remote)
        step(log, 0, "validation")
        step(log, 1, "train")
        step(log, 2, "train")
        raise KeyboardInterrupt
    with open_wandb(tmp_path, RUN, {"wandb_id": "abcd1234"}) as remote:
        log = RunLog(tmp_path, remote)
        step(log, 2, "validation")
        log.finish()
    with open_wandb(tmp_path, RUN, {"wandb_id": "abcd1234"}) as remote:
        RunLog(tmp_path, remote).finish()  # killed before its end was written down
    rows = [(at, sorted(key for key in row if key != "step")) for at, row in server.sent]
    assert rows == [
        (1, ["validation/reward", "validation/turns"]),
        (3, ["train/reward"]),
        (6, ["train/reward"]),
        (7, ["validation/reward", "validation/turns"]),
        (8, ["turns"]),
    ]
    assert server.finished == 3


def test_a_run_that_cannot_send_its_end_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(step=0)
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setattr(wandb_mode, "unreachable", lambda: None)
    monkeypatch.setattr("wandb.init", lambda **_: server)
    with (
        pytest.raises(UsageError, match=r"transcripts\.jsonl, line 1: not JSON"),
        open_wandb(tmp_path, RUN, {"wandb_id": "abcd1234"}) as remote,
    ):
        (tmp_path / TRANSCRIPTS).write_text("{}{}\n")
        server.step = 1
        RunLog(tmp_path, remote).finish()
    assert server.finished == 1


def test_disabled_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    with open_wandb(tmp_path, RUN, {"wandb_id": "abcd1234"}) as remote:
        assert remote is None
    assert not list(tmp_path.iterdir())
