from __future__ import annotations

import random

from envs.world.draw import HELD_OUT, LEAST_US, MOST_US, NEW_COLUMNS, Ranges
from envs.world.ops import BY_NAME, Step
from envs.world.suite import (
    SEED,
    SHARES,
    TRAINING,
    _several,
    load_tasks,
    of_row,
    part_of,
    task_of,
    to_row,
    training_tasks,
    validation_tasks,
    world_problems,
)
from envs.world.task import Task
from rlkernel.reference import load_reference


def test_the_parts_have_their_sizes_and_no_two_problems_are_alike() -> None:
    tasks = load_tasks()
    assert {part: len(found) for part, found in tasks.items()} == {"train": 520, "shapes": 30, "compositions": 30, "family": 30}
    problems = world_problems()
    assert len({problem.name for problem in problems}) == len({problem.source for problem in problems}) == 610
    assert sum(problem.split == "validation" for problem in problems) == 90
    assert {family: sum(t.family == family for t in training_tasks()) for family in TRAINING} == TRAINING
    assert sum(SHARES.values()) == 30


def test_validation_shows_what_training_does_not() -> None:
    tasks = load_tasks()
    known = {task.composition for task in tasks["train"]}
    assert all(task.composition in known for task in tasks["shapes"])
    assert not any(task.composition in known for task in tasks["compositions"])
    assert {task.family for task in tasks["family"]} == {HELD_OUT} and HELD_OUT not in {task.family for task in tasks["train"]}
    sizes = {(task.steps, task.sizes) for task in tasks["train"]}
    assert not any((task.steps, task.sizes) in sizes for task in validation_tasks())
    assert not any(dict(task.sizes).get("COLS") in NEW_COLUMNS for task in tasks["train"])


def test_a_name_tells_the_family_and_leads_back_to_the_task() -> None:
    for task in (*training_tasks(["fold"]), *validation_tasks(["mixed"])):
        problem = task.problem()
        assert problem.name.partition("/")[2].startswith(f"{task.family}_")
        assert task_of(problem) == task == of_row(to_row(task))
    assert part_of(validation_tasks([HELD_OUT])[0].name) == "family"


def test_the_table_is_what_the_seed_gives() -> None:
    """Chains are drawn first, so the first ten of the table follow from the seed without the others."""
    rng = random.Random(SEED)
    drawn = _several("chain", 10, rng, Ranges())
    assert tuple(drawn) == load_tasks()["train"][:10]


def test_eager_times_are_within_bounds_and_references_run() -> None:
    assert all(LEAST_US <= task.eager_us() <= MOST_US for task in (*training_tasks(), *validation_tasks()))
    for part in load_tasks().values():
        for task in part[::13]:
            reference = load_reference(task.source, small=True)
            made = reference.model(0)(*reference.inputs(0))
            assert tuple(made.shape) == task.numbers(len(task.steps), small=True), task.name


def test_the_text_of_a_reference() -> None:
    steps = (Step(BY_NAME["matmul"]), Step(BY_NAME["bias"]), Step(BY_NAME["scale"], ("0.5",)))
    sizes = (("M", 1024), ("K", 512), ("N", 2048))
    task = Task("product", steps, sizes, (("M", 8), ("K", 8), ("N", 8)), "float16")
    assert task.name == "level2/product_matmul_bias_scale_0.5_1024x512x2048_f16"
    assert (
        task.source
        == '''"""Matmul, bias, scale."""
import torch
import torch.nn as nn
import torch.nn.functional as F

# An H200 needs at least 3 us.
M = 1024
K = 512
N = 2048
SMALL = {"M": 8, "K": 8, "N": 8}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(K, N, dtype=torch.float16) * K ** -0.5)
        self.bias = nn.Parameter(torch.randn(N, dtype=torch.float16))

    def forward(self, x):
        x = x @ self.w
        x = x + self.bias
        x = x * 0.5
        return x

def get_inputs():
    return [torch.randn(M, K, dtype=torch.float16)]

def get_init_inputs():
    return []
'''
    )
    # 2 * 1024 * 512 * 2048 operations at 7.9e8 per us are 2.7 us; (1024 * 512 + 512 * 2048 + 1024 * 2048) * 2 bytes are 1.7 us.
    assert round(task.floor_us(), 1) == 2.7
    # The product: 2.5 + 2.7 / 0.8; each of the other two: 2.5 + 2 * 1024 * 2048 * 2 bytes at 4.3e6 per us; the weights 0.5.
    assert abs(task.eager_us() - (2.5 + 3.4 + 2 * (2.5 + 1.95) + 0.49)) < 0.1
