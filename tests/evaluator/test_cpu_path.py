"""Candidates that take the interpreter too long are compared at smaller sizes; modules whose parts are in modes of their own."""

from __future__ import annotations

import math

import pytest

from rlkernel.evaluator.judging.sizes.size_search import INTERPRETED_ELEMENTS
from rlkernel.evaluator.pool import Pool
from rlkernel.types import Problem, Status

REFERENCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

rows, columns = 4096, 4096

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return []
"""
ONE_BY_ONE = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.maximum(tl.load(x + o), 0.0))

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(x.numel() // BLOCK,)](x, y, BLOCK=BLOCK)
        return y
"""
FROZEN = """
import torch
import torch.nn as nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5).eval()
    def forward(self, x):
        return self.dropout(x) * 2
{inputs}
"""


async def elements(pool: Pool, block: int) -> int:
    """How many elements are compared of a kernel with a program for each block."""
    problem = Problem("rows", 1, "validation", REFERENCE)
    result = await pool.evaluate(problem, ONE_BY_ONE.replace("BLOCK=BLOCK", f"BLOCK={block}").replace("// BLOCK", f"// {block}"))
    assert result.status is Status.CORRECT, result.detail
    return math.prod(result.sizes.values())


@pytest.mark.anyio
async def test_many_small_programs_are_compared_at_smaller_sizes(pool: Pool) -> None:
    """A relu reads and makes 2 numbers per element, so that 2^18 elements fit; a program for every two of them is too much."""
    assert await elements(pool, 1024) == INTERPRETED_ELEMENTS // 2
    assert await elements(pool, 2) <= INTERPRETED_ELEMENTS // 2 // 8
    assert await elements(pool, 1024) == INTERPRETED_ELEMENTS // 2


@pytest.mark.anyio
async def test_a_part_in_a_mode_of_its_own_keeps_it(pool: Pool) -> None:
    """The dropout does nothing, although the module is in train mode."""
    inputs = REFERENCE[REFERENCE.index("rows, columns") :]
    problem = Problem("frozen", 1, "validation", FROZEN.format(name="Model", inputs=inputs))
    result = await pool.evaluate(problem, FROZEN.format(name="ModelNew", inputs=""))
    assert result.status is Status.NO_KERNEL, result.detail
