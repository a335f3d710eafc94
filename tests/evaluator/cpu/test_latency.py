"""A program takes as long as its operations wait for one another: arithmetic of depths, and of turns."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlkernel.evaluator.cpu.fetching import L1, L2, MEMORY
from rlkernel.evaluator.cpu.latency import LEVEL, PLAIN, SHARED, SPECIAL, Chain, reduction
from rlkernel.evaluator.devices import H200, Room
from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.judging.costs.roofline import launch_us, resident_programs
from rlkernel.evaluator.pool import Pool
from rlkernel.types import Problem, Status

KERNEL = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.maximum(tl.load(x + o, mask=o < n, other=0.0), 0.0)
    h = tl.zeros((1,), tl.float32)
    {loop}
    tl.store(y + o, v + 0.0 * tl.sum(h, 0), mask=o < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y
"""
CYCLES = H200.sm_khz / 1000


async def priced(pool: Pool, relu: Problem, loop: str) -> float:
    """Modelled time, less the launch."""
    result = await pool.evaluate(relu, KERNEL.replace("{loop}", loop))
    assert result.status is Status.CORRECT, result.detail
    assert result.candidate_us is not None
    return result.candidate_us - H200.launch_us


def test_reductions_by_where_their_elements_lie() -> None:
    """Of 128 threads: 32 elements lie in a warp (5 steps), 128 in 4 warps (7 steps, and twice through shared memory). Of 64 x 64,
    each thread has 4 neighbours, so that 16 threads share a row: 4 steps, and 2 combinations of its own."""
    assert reduction((32,), 0, 4) == 5 * LEVEL
    assert reduction((128,), 0, 4) == reduction((128,), None, 4) == 7 * LEVEL + 2 * SHARED
    assert reduction((64, 64), 1, 4) == reduction((64, 64), -1, 4) == reduction((64, 64), 0, 4) == 4 * LEVEL + 2 * PLAIN
    assert reduction((4096,), 0, 1) == 5 * LEVEL + 7 * PLAIN, "of 128 elements that each thread has"
    assert reduction((1, 8), 0, 4) == 0.0


def test_what_a_program_has_stored_is_there_later() -> None:
    chain, place, other = Chain(), np.arange(0, 64, 4, dtype=np.uint64), np.arange(64, 128, 4, dtype=np.uint64)
    assert chain.load(0, 1 << 30, place, 64.0, 10.0) == 10.0 + MEMORY
    assert chain.load(0, 1 << 10, place, 64.0, 10.0) == 10.0 + L1, "all of it may be in the cache of the processor"
    chain.store(0, place, 500.0)
    assert chain.load(0, 1 << 30, place, 64.0, 10.0) == 500.0 + 2 * L1
    assert chain.load(0, 1 << 30, other, 64.0, 10.0) == 10.0 + L2, "of a line that was there before"
    assert chain.load(1, 1 << 30, place, 64.0, 10.0) == 10.0 + MEMORY
    chain.wait(0.0)  # for other programs, which see what was stored, and say so
    assert chain.load(1, 1 << 30, place, 64.0, 10.0) == 500.0 + 2 * L2 + L2
    chain.begin()
    assert chain.depth == 0.0 and chain.load(0, 1 << 30, place, 64.0, 10.0) == 10.0 + MEMORY


def test_turns_that_stand_for_others_are_as_deep_as_all_of_them() -> None:
    chain, place = Chain(), np.zeros(1, dtype=np.uint64)
    chain.store(0, place, 300.0)
    chain.begin_turn()
    chain.store(0, place, 500.0)
    chain.store(1, place, 900.0)
    chain.end_turn(10)  # 200 more in each; of the other storage nothing is known to grow
    assert chain.depth == 300.0 + 10 * 200.0
    issued = 900.0 + 9 * (900.0 - 300.0)  # what comes next, after the stores of all turns
    assert chain.load(0, 1 << 10, place, 4.0, 0.0) == issued + L1 > 2300.0 + 2 * L1


def test_a_launch_takes_as_long_as_its_programs_wait() -> None:
    """One of 1,980,000 cycles takes a millisecond, less the microsecond of waits that every launch has; each turn but the first
    has a start, too. 4,224 programs of 4 warps take two turns on 132 processors with 16 places each, one more takes a third, and
    of 128 registers for each thread there is room for 4 in place of 16: eight turns."""
    one = Counts(programs=1, deepest=1e6 * CYCLES / 1000, waited=1e6 * CYCLES / 1000)
    assert launch_us(one, [], 4, H200) == pytest.approx(2.5 + 1000 - 1)
    many = Counts()
    many.add(one, 4224)
    many.programs = 4224
    assert launch_us(many, [], 4, H200) == pytest.approx(2.5 + 2 * 1000.6 - 0.6 - 1)
    assert launch_us(many, [], 4, H200, Room(registers=128)) == pytest.approx(2.5 + 8 * 1000.6 - 0.6 - 1)
    assert resident_programs(4, H200, Room(registers=32, shared_bytes=56 << 10)) == 132 * 4, "of 228 KiB, and 1 for each block"
    many.add(one, 1)
    many.programs = 4225
    assert launch_us(many, [], 4, H200) == pytest.approx(2.5 + 3 * 1000.6 - 0.6 - 1)
    short = Counts(programs=1, deepest=0.9 * CYCLES, waited=0.9 * CYCLES)
    assert launch_us(short, [], 4, H200) == pytest.approx(2.5, rel=1e-3)


FOR = "for t in range(n // 256):\n        "
TURNS = 4096 * 4096 / 256


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("turn", "cycles"),
    [
        ("h = h * 0.5 + 1.0", PLAIN),  # one operation
        ("h = tl.exp(1.0 - h)", PLAIN + SPECIAL),
        ("h = tl.sigmoid(h)", 2 * PLAIN + 2 * SPECIAL),
        ("h = 0.5 * h + 0.0 * tl.sum(v + h, 0)", 2 * PLAIN + 7 * LEVEL + 2 * SHARED),
        ("h = tl.where(t > 3, h - 1.0, h)", 2 * PLAIN),
    ],
)
async def test_a_chain_takes_its_latency_in_each_turn(pool: Pool, relu: Problem, turn: str, cycles: float) -> None:
    """131,072 programs of 128 elements, 2,112 at a time: 63 waves."""
    waves = math.ceil(4096 * 4096 / 128 / 2112)
    found = await priced(pool, relu, FOR + turn)
    assert found == pytest.approx(waves * TURNS * cycles / CYCLES, rel=0.02)


SLOW, QUICK = "h = tl.exp(1.0 - h)", "h = h * 0.5 + 1.0"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("turn", "cycles"),
    [
        (f"if flag > 9.0: {SLOW}\n        else: {QUICK}", PLAIN + SPECIAL),
        (f"if flag > 9.0: {QUICK}\n        else: {SLOW}", PLAIN + SPECIAL),  # not one behind the other
        (f"if flag > 9.0: {SLOW}\n        else: h = tl.zeros((1,), tl.float32)", PLAIN + SPECIAL),
        (f"if flag > 9.0: h = tl.zeros((1,), tl.float32)\n        {QUICK}", PLAIN),  # as where the branch is not taken
    ],
)
async def test_what_either_side_of_a_branch_gives_is_as_deep_as_the_deeper(
    pool: Pool, relu: Problem, turn: str, cycles: float
) -> None:
    waves = 4096 * 4096 / 128 / 2112
    found = await priced(pool, relu, f"flag = tl.load(x)\n    {FOR}{turn}")
    assert found == pytest.approx(waves * TURNS * cycles / CYCLES, rel=0.02)


@pytest.mark.anyio
async def test_a_tile_may_be_summed_over_both_of_its_axes(pool: Pool, relu: Problem) -> None:
    """128 numbers wait for the same steps whether they lie in a row or in a tile."""
    turn = "for j in tl.static_range(8): h += tl.sum(tl.load({places}) + h)"
    row, tile = "x + tl.arange(0, 128)", "x + tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :]"
    one, other = await priced(pool, relu, turn.format(places=row)), await priced(pool, relu, turn.format(places=tile))
    assert one == pytest.approx(other, rel=0.1) and one > 8 * reduction((128,), None, 4) / CYCLES
