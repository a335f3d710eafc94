"""The world's problems: 520 for training and 90 for validation, in the checked-in table `problems.json`.

    python -m envs.world.suite            # draws them once more from the seed and writes the table

Validation has 30 compositions of training at sizes that training never has (`shapes`), 30 compositions that training never has
(`compositions`), and 30 of a family that training never has (`family`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from envs.world.draw import FAMILIES, HELD_OUT, NEW, Ranges, candidate, idle
from envs.world.ops import BY_NAME, Step
from envs.world.oracles import load_oracles
from envs.world.task import Task
from rlkernel.types import Problem

TABLE = Path(__file__).parent / "problems.json"
TRAINING: Mapping[str, int] = {
    "chain": 80, "row": 120, "fold": 80, "product": 120, "column": 40, "window": 40, "mixed": 40,
}  # fmt: skip
"""Training problems per family."""
SHARES: Mapping[str, int] = {"chain": 4, "row": 7, "fold": 5, "product": 7, "column": 2, "window": 3, "mixed": 2}
"""Validation problems per family, of new shapes and of new compositions each."""
HELD_OUT_COUNT = 30
WEIGHTS: Mapping[str, int] = {**TRAINING, HELD_OUT: HELD_OUT_COUNT}
"""How often each family is drawn where problems are drawn beside these."""
PARTS = ("train", "shapes", "compositions", "family")
SEED = 0


def draw_tasks(seed: int = SEED) -> dict[str, tuple[Task, ...]]:
    """All tasks by part. They depend on the seed alone, and no two are alike."""
    rng = random.Random(seed)
    train = tuple(task for family, count in TRAINING.items() for task in _several(family, count, rng, Ranges()))
    known = {task.composition for task in train}
    shapes = []
    for family, count in SHARES.items():
        pool = [task for task in train if task.family == family]
        shapes += list(_several(family, count, rng, NEW, like=pool))
    new = [task for family, count in SHARES.items() for task in _several(family, count, rng, Ranges(), without=known)]
    return {
        "train": train,
        "shapes": tuple(shapes),
        "compositions": tuple(new),
        "family": tuple(_several(HELD_OUT, HELD_OUT_COUNT, rng, Ranges())),
    }


def _several(
    family: str,
    count: int,
    rng: random.Random,
    ranges: Ranges,
    *,
    like: Sequence[Task] = (),
    without: set[tuple[str, ...]] | None = None,
) -> Iterator[Task]:
    """`count` tasks of a family. like: take the steps of one of these; without: compositions to pass over."""
    found: set[tuple[object, ...]] = set()
    while len(found) < count:
        steps = rng.choice(like).steps if like else None
        task = candidate(family, rng, ranges, steps)
        if task is None or task.composition in (without or ()) or (task.steps, task.sizes) in found or idle(task):
            continue
        found.add((task.steps, task.sizes))
        yield task


def to_row(task: Task) -> dict[str, Any]:
    """The task as a row of the table."""
    steps = [" ".join([step.op.name, *step.constants]) for step in task.steps]
    return {"family": task.family, "steps": steps, "sizes": dict(task.sizes), "small": dict(task.small), "dtype": task.dtype}


def of_row(row: Mapping[str, Any]) -> Task:
    """The task of a row of the table."""
    parts = [step.split() for step in row["steps"]]
    steps = tuple(Step(BY_NAME[name], tuple(constants)) for name, *constants in parts)
    return Task(row["family"], steps, tuple(row["sizes"].items()), tuple(row["small"].items()), row["dtype"])


@cache
def load_tasks() -> Mapping[str, tuple[Task, ...]]:
    """The tasks of the table by part."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    return {part: tuple(of_row(row) for row in table[part]) for part in PARTS}


def training_tasks(families: Sequence[str] | None = None) -> tuple[Task, ...]:
    """The tasks of training, of some families or of all."""
    return tuple(task for task in load_tasks()["train"] if families is None or task.family in families)


def validation_tasks(families: Sequence[str] | None = None) -> tuple[Task, ...]:
    """The tasks of validation, of some families or of all."""
    tasks = load_tasks()
    found = (task for part in PARTS[1:] for task in tasks[part])
    return tuple(task for task in found if families is None or task.family in families)


@cache
def reserved() -> frozenset[tuple[str, ...]]:
    """The compositions that validation keeps for itself."""
    return frozenset({task.composition for task in validation_tasks()} - {task.composition for task in training_tasks()})


@cache
def reserved_sizes() -> frozenset[int]:
    """The sizes that validation keeps for itself."""
    sizes = [{size for task in tasks for _, size in task.sizes} for tasks in (validation_tasks(), training_tasks())]
    return frozenset(sizes[0] - sizes[1])


def part_of(name: str) -> str:
    """The part, one of PARTS, that a problem of the world belongs to. Raises KeyError for a problem from elsewhere."""
    return {task.name: part for part, tasks in load_tasks().items() for task in tasks}[name]


def world_problems(families: Sequence[str] | None = None) -> tuple[Problem, ...]:
    """The problems of both splits, of some families or of all, with the oracles that are known."""
    oracles = load_oracles()
    train = tuple(task.problem("train") for task in training_tasks(families))
    validation = (task.problem("validation") for task in validation_tasks(families))
    return train + tuple(replace(problem, oracles=oracles.get(problem.name, ())) for problem in validation)


def task_of(problem: Problem) -> Task:
    """The task behind a problem of the world. Raises KeyError for a problem from elsewhere."""
    return {task.name: task for tasks in load_tasks().values() for task in tasks}[problem.name]


def main() -> None:
    """Draw the tasks and write the table."""
    parts = draw_tasks()
    lines = []
    for part in PARTS:
        rows = ",\n".join("  " + json.dumps(to_row(task)) for task in parts[part])
        lines.append(f' "{part}": [\n{rows}\n ]')
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{TABLE}: {', '.join(f'{len(parts[part])} {part}' for part in PARTS)}; families {', '.join(FAMILIES)}")


if __name__ == "__main__":
    main()
