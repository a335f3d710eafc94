"""Values that cross borders keep what they hold."""

from __future__ import annotations

import json

from rlkernel.types import Completion, Evaluation, LaunchFact, OpFact, Problem, Seconds, Status, Trajectory, Turn

FACTS = Evaluation(
    Status.IMPLAUSIBLE,
    "too fast",
    speedup=2.5,
    timing="measured",
    launches=(LaunchFact("k", 1, 2.0, 0.5, live=True),),
    ops=(OpFact("aten.mm", 1, 2.0, 0.5),),
    reference_ops=(OpFact("aten.relu", 3, 10.0, 1.0),),
    seconds=Seconds(trace=0.25, total=1.5),
)


def test_an_evaluation_survives_json() -> None:
    data = json.loads(json.dumps({"id": "case", **FACTS.to_json()}))
    assert (data["status"], data["correct"], data["speedup"]) == ("implausible", False, 2.5)
    assert Evaluation.from_json(data) == FACTS


def test_only_one_status_is_a_success() -> None:
    assert [status for status in Status if Evaluation(status, "").correct] == [Status.CORRECT]


def test_the_best_turn_is_the_first_of_those_with_the_largest_reward() -> None:
    completion = Completion((), (), "", "stop")
    turns = [Turn((), completion, None, FACTS, reward, name) for reward, name in ((0.5, "a"), (1.0, "b"), (1.0, "c"))]
    assert Trajectory(Problem("p", 1, "train", ""), tuple(turns)).best.feedback == "b"
