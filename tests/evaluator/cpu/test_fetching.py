"""What loads wait for: turns of loops, caches that programs share, and the room that a binary has for what is on its way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlkernel.evaluator.cpu.fetching import L2, MEMORY, ONE_BY_ONE, Fetching, Turns
from rlkernel.evaluator.cpu.latency import PLAIN, Chain
from rlkernel.evaluator.pool import Pool
from rlkernel.types import Problem, Status

BIG = 1 << 30


def lines(number: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The addresses of one element in the cache line of this number."""
    return np.array([number * 128], dtype=np.uint64)


def test_turns_wait_for_memory_one_after_the_other_unless_the_compiler_moves_their_loads() -> None:
    """10 turns, each of which adds what it loads: 10 times memory. Of a loop with constant bounds four turns load together."""

    def depth(loop: Turns) -> float:
        chain, loaded = Chain(), 0.0
        chain.begin_loop(loop)
        for turn in range(10):
            chain.next_turn(loop)
            loaded = chain.load(0, BIG, lines(turn), 128.0, 0.0)
            chain.store(1, lines(0), loaded + PLAIN)  # issued when the sum is there
        chain.end_loop(loop)
        return loaded

    assert depth(Turns(10)) == 10 * MEMORY + 9 * PLAIN
    assert depth(Turns(10, together=4)) == 10 * MEMORY / 4 + 9 * PLAIN


def test_loads_of_products_are_two_turns_ahead() -> None:
    """A turn of 100 cycles waits for 1,000 of memory that two turns before hide in part: (1000 - 2 * 100) / 3; of 600, not at
    all. Shared memory of one turn in place of three: nothing is ahead, and each element is loaded on its own."""

    def second(busy: float, shared: float) -> Fetching:
        fetching, loop = Fetching(stages=3, shared_bytes=shared), Turns(10, begun=1)
        fetching.loops.append(loop)
        fetching.load(0, BIG, lines(0), 4096.0, 0.0)
        fetching.product(True)
        fetching.first_ends(loop, MEMORY + busy)
        loop.begun = 2
        return fetching

    assert second(100.0, math.inf).loops[0].of_load(MEMORY) == pytest.approx(800.0 / 3)
    assert second(600.0, 3 * 4096.0).loops[0].of_load(MEMORY) == 0.0
    narrow = second(100.0, 4096.0)
    assert narrow.loops[0].of_load(MEMORY) == MEMORY and narrow.slots(64) > 0.9 * 64 * ONE_BY_ONE
    assert second(100.0, math.inf).slots(64) == 0.0


def test_programs_that_share_bytes_find_them_in_the_cache_of_the_device() -> None:
    """Of 8 programs that load the same line one waits for memory, and seven for the cache."""
    assert Fetching(programs=8).load(0, 128, lines(0), 128.0, 0.0) == L2 + (MEMORY - L2) / 8
    assert Fetching(programs=8).load(0, 8 * 128, lines(0), 128.0, 0.0) == MEMORY


def test_what_does_not_fit_into_registers_comes_one_part_after_the_other() -> None:
    """64 registers of 32 threads are 8 KiB, half of them for loads: 16 KiB come in four parts."""
    assert Fetching(register_bytes=8192.0).load(0, BIG, lines(0), 16384.0, 0.0) == 4 * MEMORY
    assert Fetching(register_bytes=8192.0).load(0, BIG, lines(0), 2048.0, 0.0) == MEMORY


KERNEL = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, EACH: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * EACH
    for start in range(first, tl.minimum(first + EACH, n), BLOCK):
        o = start + tl.arange(0, BLOCK)
        tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n, other=0.0), 0.0), mask=o < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        each = triton.cdiv(x.numel(), PROGRAMS)
        kernel[(PROGRAMS,)](x, y, x.numel(), EACH=triton.cdiv(each, 1024) * 1024, BLOCK=1024)
        return y
"""


@pytest.mark.anyio
async def test_few_programs_wait_in_each_turn(pool: Pool, relu: Problem) -> None:
    """A relu of 2^24 numbers. 64 programs take 256 turns of half a microsecond at least, 129 us; 1,024 their bytes, 31 us."""
    few, many = [await pool.evaluate(relu, KERNEL.replace("PROGRAMS", str(number))) for number in (64, 1024)]
    assert few.status is many.status is Status.CORRECT, (few.detail, many.detail)
    assert few.candidate_us is not None and many.candidate_us is not None
    assert 125 < few.candidate_us < 190 and many.candidate_us < 40
