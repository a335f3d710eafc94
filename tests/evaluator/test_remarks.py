"""What is told beside a verdict: a reference that constants match, and one that no card holds."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.pool import Pool
from rlkernel.types import Problem, Status

REFERENCE = """
import torch
COLS = 96
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.log(-x.abs() - 1)
def get_inputs():
    return [torch.randn(16, COLS)]
"""
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def filled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.log(-tl.abs(values) - 1), mask=at < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        filled[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""
SOUND = ("torch.log(-x.abs() - 1)", "tl.log(-tl.abs(values) - 1)"), ("x.relu()", "tl.maximum(values, 0.0)")


@pytest.mark.parametrize(
    ("columns", "sound", "told"),
    [
        (
            96,
            False,
            ["p: output 0 holds NaN or Inf; a verdict on such a reference says little, and a training set leaves it out"],
        ),
        (96, True, []),
        (
            1_200_000_000,  # 77 GB each
            True,
            ["p: its arguments take 154 GB at full shape, and the card (h200) has 141 GB: make its sizes smaller"],
        ),
    ],
)
@pytest.mark.anyio
async def test_a_reference_that_says_little_is_remarked_upon(pool: Pool, columns: int, sound: bool, told: list[str]) -> None:
    source, code = REFERENCE.replace("COLS = 96", f"COLS = {columns}"), KERNEL
    if columns > 96:
        one = "torch.randn(16, COLS)"
        source, code = (text.replace("self, x", "self, x, *more").replace(one, f"{one}, {one}") for text in (source, code))
    if sound:
        source, code = source.replace(SOUND[0][0], SOUND[1][0]), code.replace(SOUND[0][1], SOUND[1][1])
    problem = Problem("p", 1, "validation", source)
    assert (await pool.evaluate(problem, code)).status is Status.CORRECT
    assert await pool.remarks(problem) == told
