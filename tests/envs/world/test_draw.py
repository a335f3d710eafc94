from __future__ import annotations

import random
from dataclasses import replace

import pytest

from envs.world.draw import NEW, Ranges, candidate, idle
from envs.world.ops import BY_NAME, Step
from envs.world.task import Task


def steps(*names: str) -> tuple[Step, ...]:
    return tuple(Step(BY_NAME[name], BY_NAME[name].constants[0] if BY_NAME[name].constants else ()) for name in names)


ROWS = Task("row", (), (("ROWS", 4096), ("COLS", 5000)), (("ROWS", 3), ("COLS", 300)))


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("shift", "softmax"), "without `x = x + 0.1`"),  # softmax does not see a shift
        (("scale", "layer_norm"), "without `x = x * 0.1`"),
        (("softmax", "abs"), "without `x = x.abs()`"),
        (("softmax", "residual"), "hardly depends on x"),  # a softmax of 300 columns is small beside a normal r
    ],
)
def test_operations_that_hardly_matter_are_refused(names: tuple[str, ...], reason: str) -> None:
    assert reason in (idle(replace(ROWS, steps=steps(*names))) or "")


@pytest.mark.parametrize("names", [("bias", "softmax"), ("layer_norm", "weight", "bias"), ("bias", "logsumexp")])
def test_fair_tasks_are_taken(names: tuple[str, ...]) -> None:
    assert idle(replace(ROWS, steps=steps(*names))) is None


def test_half_precision_squares_and_small_mixed_products_are_not_drawn() -> None:
    rng = random.Random(0)
    drawn = [candidate("mixed", rng, Ranges()) for _ in range(200)]
    assert all(task.size("N") >= 1024 and task.half for task in drawn if task is not None)
    assert sum(task is not None for task in drawn) > 10
    squares = [candidate("chain", rng, Ranges(), steps("square", "bias")) for _ in range(100)]
    assert {task.dtype for task in squares if task is not None} == {"float32"}


def test_new_shapes_are_not_those_of_training() -> None:
    rng = random.Random(1)
    columns = {task.size("COLS") for _ in range(200) if (task := candidate("row", rng, NEW)) is not None}
    assert columns and not columns & set(Ranges().columns)
