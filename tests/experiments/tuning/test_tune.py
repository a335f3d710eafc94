"""A tiny model is tuned by the command itself: what it learns is executed, and a run that was stopped goes on exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from experiments.cold_start import command
from experiments.tuning import tune
from rlkernel.types import Evaluation, Group, Problem, Status
from tests.experiments.tuning import tiny

TIMES = ("tokens_per_second",)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for make in (tiny.model, tiny.table, tiny.problems):
        make(tmp_path)
    return tmp_path


def words(**flags: Any) -> list[str]:
    given = {"model": "tiny", "data": "conversations.jsonl", "validation": "problems.jsonl", "style": "short", "jobs": 1, **flags}
    return [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def metrics(place: Path, split: str) -> list[dict[str, Any]]:
    (path,) = place.glob("runs/cold_start/tiny-*/metrics.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows if row["split"] == split]


@pytest.mark.slow
def test_what_a_tiny_model_learns_is_executed_and_scores(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = {"steps": 120, "batch": 16, "micro_batch": 16, "learning_rate": 1e-2, "turns": 1, "max_new_tokens": 200}
    assert command.main(words(**flags, validation_rollouts=8, validation_every=1000, out="tuned")) == 0
    told = capsys.readouterr()
    assert "conversations.jsonl: 16 conversations, 1 rows left out" in told.err and "row 17: not JSON" in told.err
    before, after = metrics(place, "validation")
    assert (before["step"], before["correct_rate"]) == (0, 0.0)
    assert after["step"] == 120 and after["correct_rate"] >= 0.5 and after["timing"] == "modelled"
    losses = [row["loss"] for row in metrics(place, "train")]
    assert len(losses) == 120 and losses[-1] < 0.2 < losses[0]
    assert "turn 1" in told.out and json.loads((place / "tuned" / "behaviour.json").read_text())["timing"] == "modelled"
    assert command.main(words(**flags, validation_rollouts=8, validation_every=1000, out="tuned")) == 0
    assert "tuned is finished already" in capsys.readouterr().err


class Stopped(Exception):
    """What ends a run in the middle."""


def examine_nothing(stop_at: int, calls: list[int]) -> Any:
    """Stands for the examination: one wrong answer, and an end of the process at the call `stop_at`."""
    from rlkernel.types import Completion, Trajectory, Turn

    async def examine(*_: Any) -> tuple[Group, ...]:
        calls.append(1)
        if len(calls) == stop_at:
            raise Stopped
        problem = Problem("relu", 1, "validation", "")
        turn = Turn((1,), Completion((2,), (0.0,), "", "stop"), None, Evaluation(Status.NO_CODE, ""), 0.0, "")
        return (Group(problem, (Trajectory(problem, (turn,)),)),)

    return examine


@pytest.mark.slow
@pytest.mark.parametrize("kind", [{"weights": "float32"}, {"weights": "bfloat16"}, {"lora_rank": 4}], ids=str)
def test_a_tuning_that_was_stopped_goes_on_exactly(place: Path, monkeypatch: pytest.MonkeyPatch, kind: dict[str, Any]) -> None:
    flags = {
        "steps": 6,
        "batch": 4,
        "micro_batch": 2,
        "learning_rate": 1e-3,
        "validation_every": 2,
        "checkpoint_every": 1,
        **kind,
    }

    def run(out: str, stop_at: int) -> None:
        monkeypatch.setattr(tune, "examine", examine_nothing(stop_at, []))
        assert command.main(words(**flags, out=out)) == 0

    run("whole", stop_at=0)
    (kept,) = place.glob("runs/cold_start/tiny-*")
    rows = metrics(place, "train"), metrics(place, "validation")
    kept.rename(place / "kept")
    with pytest.raises(Stopped):
        run("parts", stop_at=3)  # at step 4, before its checkpoint
    (kept,) = place.glob("runs/cold_start/tiny-*")
    (kept / "checkpoints" / "checkpoint-4").mkdir()  # as a kill in the middle of writing leaves it
    run("parts", stop_at=0)
    assert (metrics(place, "train"), metrics(place, "validation")) == rows
    assert [row["step"] for row in rows[1]] == [0, 2, 4, 6] and [row["step"] for row in rows[0]] == [1, 2, 3, 4, 5, 6]
    whole, parts = (load_file(place / name / "model.safetensors") for name in ("whole", "parts"))
    assert all((whole[name] == parts[name]).all() for name in whole)
    untrained = load_file(place / "tiny" / "model.safetensors")
    assert any((whole[name].float() != untrained[name]).any() for name in whole)


@pytest.mark.slow
def test_neither_micro_batches_nor_a_stop_after_the_last_step_change_the_weights(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {"steps": 3, "batch": 8, "learning_rate": 1e-3, "validation_every": 10}
    monkeypatch.setattr(tune, "examine", examine_nothing(0, []))
    assert command.main(words(**flags, micro_batch=8, out="one")) == 0
    (directory,) = place.glob("runs/cold_start/tiny-*")
    manifest = directory / "manifest.json"
    manifest.write_text(json.dumps({k: v for k, v in json.loads(manifest.read_text()).items() if k != "finished"}))
    assert command.main(words(**flags, out="again")) == 0
    directory.rename(place / "kept")
    assert command.main(words(**flags, micro_batch=2, out="four")) == 0
    one, again, four = (load_file(place / name / "model.safetensors") for name in ("one", "again", "four"))
    assert all((one[name] == again[name]).all() for name in one)
    assert max(float((one[name] - four[name]).abs().max()) for name in one) < 1e-5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "tiny"], "--model is trained on conversations: say where they are, --data"),
        (["--data", "x.jsonl"], "--data is for a model that exists: give --model NAME"),
        (["--model", "tiny", "--data", "x", "--world", "cpu"], "--world is not for a model that exists: leave --world or"),
        (words(column="text=a"), "--column text=a: write messages=NAME, once"),
        (words(batch=6, micro_batch=4), "--batch 6: give a multiple of --micro-batch times the processes, 4"),
        (words(length=20), "no answer of the table fits into 20 tokens: raise --length"),
        (words(data="problems.jsonl"), "its columns are name, level.*--column messages=NAME"),
    ],
)
def test_unusable_arguments(place: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    import re

    assert command.main(arguments) == 2
    assert re.search(message, capsys.readouterr().err)
