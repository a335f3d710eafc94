"""The batch that a checkpoint holds is the one that was sampled, wherever classes stand."""

from __future__ import annotations

import pickle
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest

from rlkernel.training.ahead import FILE, OLD_FILE, SampledBatch, read_ahead, write_ahead
from rlkernel.types import Completion, Evaluation, Group, LaunchFact, OpFact, Problem, Seconds, Status, Trajectory, Turn

PROBLEM = Problem("level1/relu", 1, "train", "# é \ud800\n")
FACTS = Evaluation(
    Status.CORRECT,
    "fine",
    matches=True,
    speedup=0.1 + 0.2,
    speedup_high=float("inf"),
    timing="measured",
    trials=7,
    launches=(LaunchFact("k", 2, 1 / 3, 0.5, True, registers=32),),
    ops=(OpFact("aten.mm", 1, 5e-324, 1.0),),
    reference_ops=(OpFact("aten.relu", 1, 2.0, 1.0),),
    seconds=Seconds(trace=0.1, total=1e300),
    cached=True,
)
TURNS = (
    Turn((1, 2), Completion((3, 4), (-0.0, -1.2345678901234567e-5), "a\x00b", "stop"), "code", FACTS, 1.0, "go on"),
    Turn((5,), Completion((), (), "", "length"), None, Evaluation(Status.NO_CODE, ""), 0.0, ""),
)
BATCH = SampledBatch((Group(PROBLEM, (Trajectory(PROBLEM, TURNS), Trajectory(PROBLEM, TURNS[:1]))), Group(PROBLEM, ())), 6)


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    write_ahead(tmp_path, BATCH)
    found = read_ahead(tmp_path)
    assert found == BATCH
    # Equality holds between 1 and 1.0, 0.0 and -0.0; the representation tells them apart, and lists from tuples.
    assert repr(found) == repr(BATCH)
    assert type(found.groups[0].trajectories[0].turns[0].evaluation.status) is Status


def test_the_file_names_no_class(tmp_path: Path) -> None:
    write_ahead(tmp_path, BATCH)
    text = (tmp_path / FILE).read_text()
    assert "rlkernel" not in text and "Batch" not in text and text.startswith('{"groups": [')


def test_a_checkpoint_without_one(tmp_path: Path) -> None:
    assert read_ahead(tmp_path) is None


@pytest.mark.parametrize("home", ["rlkernel.loop", "rlkernel.training.loop"])
def test_files_of_earlier_versions_are_read(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Batch:
        groups: tuple[Group, ...]
        weights: int

    Batch.__module__, Batch.__qualname__ = home, "Batch"
    module = types.ModuleType(home)
    module.Batch = Batch  # type: ignore[attr-defined]
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, home, module)
        (tmp_path / OLD_FILE).write_bytes(pickle.dumps(Batch(BATCH.groups, BATCH.weights)))
    assert repr(read_ahead(tmp_path)) == repr(BATCH)
