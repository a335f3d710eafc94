"""How much of an input is touched at full shape, by all programs of a launch together, and when too little of it is."""

from __future__ import annotations

import math

import anyio
import pytest
import torch

from rlkernel.evaluator.cpu.reached import OF_SAMPLED, Reached, Shares
from rlkernel.evaluator.judging.costs.counts import ELSEWHERE, Counts
from rlkernel.evaluator.messages.judgement import Reads
from rlkernel.evaluator.pool import Pool
from rlkernel.types import Evaluation, Problem, Status

KERNEL = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, rows, cols, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    from_row = {read}
    to_row = {write}
    v = tl.load(x + from_row * cols + c, mask=c < cols, other=0.0)
    tl.store(y + to_row * cols + c, tl.maximum(v, 0.0), mask=c < cols)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(x.shape[0],)](x, y, x.shape[0], x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
QUARTERS = KERNEL.replace("mask=c < cols", "mask=(c < cols) & (c % 4 == tl.program_id(1))").replace(
    "shape[0],)]", "shape[0], 4)]"
)
WHOLE = ["r", "rows - 1 - r", "r ^ 1", "(r * 5) % rows", "(r + rows // 2) % rows"]
PARTS = ["r % 64", "r & 255", "tl.minimum(r, 100)", "tl.where(r < 1000, r, 7)", "(r // 8 % 16) * 8 + r % 8"]


@pytest.mark.anyio
async def test_rows_that_are_never_read_are_missed(pool: Pool, relu: Problem) -> None:
    """Of 4,096 rows, where 6 are compared."""
    found: dict[str, Evaluation] = {}

    async def one(read: str, write: str) -> None:
        found[read] = await pool.evaluate(relu, KERNEL.replace("{read}", read).replace("{write}", write))

    async with anyio.create_task_group() as tasks:
        for row in WHOLE:
            tasks.start_soon(one, row, row)
        for row in PARTS:
            tasks.start_soon(one, row, "r")
    assert {row: found[row].status for row in WHOLE} == dict.fromkeys(WHOLE, Status.CORRECT)
    assert {row: found[row].status for row in PARTS} == dict.fromkeys(PARTS, Status.IMPLAUSIBLE)
    assert all("never read" in found[row].detail for row in PARTS)


@pytest.mark.anyio
async def test_programs_that_take_turns_by_masks_alone_read_all(pool: Pool, relu: Problem) -> None:
    found = await pool.evaluate(relu, QUARTERS.replace("{read}", "r").replace("{write}", "r"))
    assert found.status is Status.CORRECT


def test_what_launches_and_operators_touch() -> None:
    one, other, view = (torch.empty(100, device="meta") for _ in range(3))
    places = [tensor.untyped_storage()._cdata for tensor in (one, other)]
    reached = Reached()
    reached.of_kernel(Counts(apart={0: 100.0, 1: 300.0}, storages=places))
    reached.of_kernel(Counts(apart={0: 40.0}, storages=places))
    reached.of_operator(0, [view], [], works=False)
    assert (reached.share(one), reached.share(other), reached.share(view)) == (0.35, 0.75, 0.0)
    reached.of_kernel(Counts(apart={ELSEWHERE: 40.0}, storages=places))
    reached.of_operator(1, [view], [], works=True)
    assert (reached.share(one), reached.share(other), reached.share(view)) == (0.45, 0.85, math.inf)


@pytest.mark.parametrize(
    ("full", "small", "missed"),
    [
        (0.5, 1.0, True),
        (0.5, 0.6, False),
        (0.79, 0.99, True),
        (0.79, 0.97, False),
        (0.96, 1.0, False),
        (math.inf, math.inf, False),
        (0.0, 0.0, False),
    ],
)  # fmt: skip
def test_too_little_is_what_is_all_at_the_smaller_size(full: float, small: float, missed: bool) -> None:
    there = Shares((9.0, small), {"w": small}, {3: small})
    assert Shares((0.1, full)).unread(Reads((0.0, 400.0)), lambda: there) == missed * "an input"
    assert Shares((0.1, 1.0), {"w": full}).unread(Reads((0.0, 400.0), {"w": 64.0}), lambda: there) == missed * "a parameter"
    assert Shares((0.1, 1.0), {}, {3: full}).unread(Reads(made=True), lambda: there) == missed * "what other kernels wrote"
    assert not Shares((0.1, 1.0), {}, {3: full}).unread(Reads(), lambda: there), "a place may hide a part"
    assert not Shares((0.1, full)).unread(Reads((0.0, 0.0)), lambda: there), "nothing is claimed"
    assert not Shares((0.1, 1.0)).unread(Reads((0.0, 400.0), {"w": 64.0}), lambda: there), "it has another name"


def test_where_programs_differ_those_that_were_followed_may_have_read_less() -> None:
    there, reads = Shares((1.0,), {}, {3: 1.0}), Reads((400.0,), made=True)
    assert Shares((0.9,)).unread(reads, lambda: there) == "an input"
    assert not Shares((0.9,)).unread(reads, lambda: there, OF_SAMPLED)
    assert not Shares((1.0,), {}, {3: 0.9}).unread(reads, lambda: there)


def test_what_is_read_of_what_was_written() -> None:
    reached = Reached()
    one, other = torch.empty(100, device="meta"), torch.empty(100, device="meta")
    for step, tensor in enumerate((one, other)):
        reached.of_operator(step, [], [tensor], works=False)
    places = [tensor.untyped_storage()._cdata for tensor in (one, other)]
    reached.of_kernel(Counts(stored={0: 200.0, 1: 4000.0}, storages=places))
    reached.of_kernel(Counts(apart={0: 50.0, 1: 400.0}, storages=places))
    assert reached.shares([], {}).made == {0: 0.25, 1: 1.0}, "half of the first was written, and all of the other several times"
