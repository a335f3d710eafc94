"""Which programs are followed: which kernels have programs that may differ, where those are drawn from, when they differ."""

from __future__ import annotations

import random

import pytest

from rlkernel.evaluator.cpu.sampling import differ, drawn, spread, varying
from rlkernel.evaluator.program.schema import Function, Program
from rlkernel.evaluator.program.values import FunctionRef, ModuleRef

BODY = "def kernel(x, n, BLOCK: tl.constexpr):\n    {body}\n"
HELPER = "def helper(x, start, BLOCK: tl.constexpr):\n    {body}\n    return x\n"


def program(body: str, helper: str = "pass") -> Program:
    tl = {"tl": ModuleRef("triton.language")}
    functions = (
        Function("kernel", BODY.format(body=body), 1, tl | {"helper": FunctionRef(1)}, ()),
        Function("helper", HELPER.format(body=helper), 1, tl, ()),
    )
    return Program(functions, (), (), {}, (), (), None)


@pytest.mark.parametrize(
    ("body", "helper", "differs"),
    [
        ("i = tl.program_id(0) * BLOCK\n    tl.store(x + i, tl.load(x + i, mask=i < n), mask=i < n)", "pass", False),
        ("for k in range(0, n, BLOCK): tl.store(x + k, tl.program_id(0))", "pass", False),
        ("if BLOCK > 16: tl.store(x + tl.program_id(0), 1.0)", "pass", False),
        ("if tl.program_id(0) == 3: tl.store(x, 1.0)", "pass", True),
        ("first = tl.program_id(axis=0); last = first + 1\n    for k in range(last * BLOCK): tl.store(x + k, 1.0)", "pass", True),
        ("low, high = 0, tl.program_id(0)\n    while low < high: low += 1", "pass", True),
        ("v = 1.0 if tl.program_id(1) > n else 2.0; tl.store(x, v)", "pass", True),
        ("helper(x, n, BLOCK)", "for k in range(start): tl.store(x + k, 1.0)", True),
        ("helper(x, n, BLOCK)", "for k in range(BLOCK): tl.store(x + k, 1.0)", False),
        ("if helper(x, n, BLOCK) > n: tl.store(x, 1.0)", "pass", True),
    ],
)
def test_programs_vary_where_branches_and_loops_depend_on_them(body: str, helper: str, differs: bool) -> None:
    assert (0 in varying(program(body, helper))) is differs


def test_programs_are_spread_over_each_dimension() -> None:
    """16 of a grid of 64 x 32: one in each slice of 4 columns, one in each pair of rows."""
    numbers = list(spread((64, 32, 1), 16, random.Random(0)))
    assert sorted(number % 64 // 4 for number in numbers) == list(range(16))
    assert sorted(number // 64 // 2 for number in numbers) == list(range(16))


def test_the_first_ones_of_a_grid_that_varies_never_all_lie_on_one_side() -> None:
    for seed in range(200):
        numbers = drawn((64, 1, 1), random.Random(seed), varied=True)
        assert sorted(next(numbers) // 16 for _ in range(4)) == [0, 1, 2, 3]


def test_the_first_two_of_a_grid_that_varies_lie_opposite_each_other() -> None:
    """Work that grows along 256 programs: slots s and 3 - s of 64 programs each, so that two programs' mean is 192/256 to
    320/256 of the grid's."""
    for seed in range(200):
        numbers = drawn((256, 16, 1), random.Random(seed), varied=True)
        assert 192 <= next(numbers) % 256 + next(numbers) % 256 <= 320


def test_a_small_grid_is_followed_in_order() -> None:
    numbers = drawn((2, 1, 1), random.Random(0), varied=True)
    assert [next(numbers), next(numbers)] == [0, 1]


def test_a_quarter_more_of_anything_is_a_difference() -> None:
    assert not differ([(100.0, 10.0, 0.0), (80.0, 10.0, 0.0)])
    assert differ([(100.0, 10.0, 0.0), (74.0, 10.0, 0.0)])
    assert differ([(100.0, 10.0, 8.0), (100.0, 10.0, 0.0)])
