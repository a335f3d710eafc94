"""Files that set seeds of their own: a kernel that keeps its first answer is wrong all the same."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.pool import Pool
from rlkernel.types import Problem, Status

REFERENCE = """
import numpy as np
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    {draw}

def get_init_inputs():
    return []
"""
DRAWS = {
    "torch": "torch.manual_seed(0); return [torch.randn(64, 64)]",
    "generator": "return [torch.randn(64, 64, generator=torch.Generator().manual_seed(0))]",
    "numpy": "return [torch.from_numpy(np.random.RandomState(0).randn(64, 64).astype(np.float32))]",
}
HONEST = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.maximum(tl.load(x + at, mask=at < n), 0.0), mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""
KEPT = (
    HONEST.replace("](x, y", "](first, y")
    .replace("return y", "return y + 0.0 * x")
    .replace("self, x):", "self, x):\n        first = self.kept = getattr(self, 'kept', x)")
)
"""Answers for the inputs of its first call, and looks at the others as if it used them."""


@pytest.mark.anyio
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
async def test_an_answer_that_is_kept_is_wrong(pool: Pool, draw: str) -> None:
    problem = Problem("mine/relu", 1, "validation", REFERENCE.format(draw=draw))
    honest, kept = await pool.evaluate(problem, HONEST), await pool.evaluate(problem, KEPT)
    assert honest.status is Status.CORRECT, honest.detail
    assert kept.status is Status.INCORRECT, kept.detail


@pytest.mark.gpu
@pytest.mark.anyio
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
async def test_an_answer_that_is_kept_is_wrong_on_a_gpu(gpu_pool: Pool, draw: str) -> None:
    await test_an_answer_that_is_kept_is_wrong(gpu_pool, draw)
