"""Whatever a kernel computes of its program's number, a program that does all of the work is seen where a launch is priced."""

from __future__ import annotations

import anyio
import pytest

from rlkernel.evaluator.pool import Pool
from rlkernel.types import Evaluation, Problem, Status

KERNEL = """
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def larger(a, b):
    return tl.maximum(a, b)

@triton.jit
def kernel(x, y, n, chosen, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    mine = {expression}
    p = tl.max(tl.full((1,), 0, tl.int32), 0) + chosen
    wanted = {expression}
    if mine == wanted:
        for start in range(0, n, BLOCK):
            o = start + tl.arange(0, BLOCK)
            tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        programs = max(1, x.numel() // 671)
        kernel[(programs,)](x, y, x.numel(), programs * 5 // 8, BLOCK=1024)
        return y
"""
BLOCK = "(tl.full(({shape}), 0, tl.int32) + p)"
EXPRESSIONS = [
    "p",
    "p.to(tl.float32, bitcast=True)",
    "p.to(tl.float64) * 3 - 1",
    "tl.umulhi(p * 65536, 2147483647)",
    "tl.rand(1, p)",
    "tl.log(p.to(tl.float32) + 1)",
    "libdevice.pow(p.to(tl.float32), 1.5)",
    "tl.fma(p.to(tl.float32), 2.0, 1.0)",
    "tl.where(p == chosen, 1, 0)",
    "tl.swizzle2d(p, 0, 65536, 1, 1)[0]",
    "p // 7 * 7 + p % 7",
    "p" + " + 1" * 80,
    f"{BLOCK.format(shape='1,')}.item()",
    f"{BLOCK.format(shape='1, 1')}.T.item()",
    f"tl.max(tl.max({BLOCK.format(shape='2, 16')}.T, 0), 0)",
    f"tl.reshape({BLOCK.format(shape='1, 1')}, (1,)).item()",
    f"tl.split({BLOCK.format(shape='2,')})[0]",
    "tl.max(tl.sort(tl.arange(0, 16) * 0 + p), 0)",
    "tl.reduce(tl.arange(0, 16) + p, 0, larger)",
    "tl.max(tl.associative_scan(tl.arange(0, 16) + p, 0, larger), 0)",
    "tl.max(tl.gather(tl.arange(0, 16) + p, tl.arange(0, 16), 0), 0)",
    "tl.max(tl.max(tl.join(tl.arange(0, 16) + p, tl.arange(0, 16) + p), 0), 0)",
]


@pytest.mark.anyio
async def test_a_program_that_does_all_of_the_work_is_priced_whatever_it_knows_itself_by(pool: Pool, relu: Problem) -> None:
    """One program moves 256 MiB, which takes at least 50 times as long as all of them together would."""
    found: dict[str, Evaluation] = {}

    async def one(expression: str) -> None:
        found[expression] = await pool.evaluate(relu, KERNEL.replace("{expression}", expression))

    async with anyio.create_task_group() as tasks:
        for expression in EXPRESSIONS:
            tasks.start_soon(one, expression)
    cheap = {e: (r.status, r.detail) for e, r in found.items() if r.speedup is not None and r.speedup > 0.1}
    assert cheap == {}
    assert {r.status for r in found.values()} <= {Status.CORRECT, Status.UNTRACEABLE}, found
