"""The batches that a checkpoint holds are those that were sampled, wherever classes stand."""

from __future__ import annotations

from pathlib import Path

from rlkernel.rollout import Course
from rlkernel.training.ahead import FILE, Ahead, BegunBatch
from rlkernel.types import (
    Closeness,
    Completion,
    Evaluation,
    Group,
    LaunchFact,
    OpFact,
    Oracle,
    Problem,
    Seconds,
    Status,
    Trajectory,
    Turn,
)

PROBLEM = Problem("level1/relu", 1, "train", "# é \ud800\n", (Oracle("NVIDIA H200", "measured", 1.7),))
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
    kernelbench_close=Closeness.LOOSE,
    sizes={"N": 64, "shape": [2, 3]},
    seconds=Seconds(trace=0.1, total=1e300),
    cached=True,
)
TURNS = (
    Turn((1, 2), Completion((3, 4), (-0.0, -1.2345678901234567e-5), "a\x00b", "stop"), "code", FACTS, 1.0, "go on"),
    Turn((5,), Completion((), (), "", "length"), None, Evaluation(Status.NO_CODE, ""), 0.0, ""),
)
GROUPS = (Group(PROBLEM, (Trajectory(PROBLEM, TURNS), Trajectory(PROBLEM, TURNS[:1]))), Group(PROBLEM, ()))
PART = Completion((8, 9), (-0.5, -1 / 3), "half a w", "paused", (6, 7))
BEGUN = BegunBatch(9, (PROBLEM,), ((Course(TURNS[:1], PART), Course(), Course(TURNS, over=True)),))


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    ahead = Ahead([GROUPS, GROUPS[1:]], [BEGUN, BegunBatch.of(10, (PROBLEM, PROBLEM), 2)])
    ahead.write(tmp_path)
    found = Ahead.read(tmp_path)
    assert found == ahead
    # Equality holds between 1 and 1.0, 0.0 and -0.0; the representation tells them apart, and lists from tuples.
    assert repr(found) == repr(ahead)
    assert type(found.ready[0][0].trajectories[0].turns[0].evaluation.status) is Status


def test_the_file_names_no_class(tmp_path: Path) -> None:
    Ahead([GROUPS], [BEGUN]).write(tmp_path)
    text = (tmp_path / FILE).read_text()
    assert "rlkernel" not in text and "Batch" not in text and text.startswith('{"ready": [[')


def test_a_checkpoint_without_one(tmp_path: Path) -> None:
    Ahead().write(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert Ahead.read(tmp_path) == Ahead.read(None) == Ahead()


def test_a_batch_is_complete_when_every_trajectory_has_ended() -> None:
    assert (BEGUN.under_way, BegunBatch.of(1, (PROBLEM,), 2).under_way) == (2, 2)
    ended = BegunBatch(9, (PROBLEM,), ((Course(TURNS, over=True), Course(TURNS[:1], over=True)),))
    assert ended.under_way == 0 and ended.groups == GROUPS[:1]
