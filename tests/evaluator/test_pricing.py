"""Only what compiles is priced: orders of configurations, and work that depends on nothing that a source can tell."""

from __future__ import annotations

from typing import Any

import pytest

from rlkernel.evaluator.pool import Pool
from rlkernel.types import Evaluation, Problem, Status

KERNEL = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.autotune(configs=[{configs}], key=["n"])
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr, PASSES: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n, other=0.0)
    for i in range(PASSES - 1):
        tl.store(y + o, v, mask=o < n)
        v = tl.maximum(v, tl.load(x + o, mask=o < n, other=0.0))
    tl.store(y + o, tl.maximum(v, 0.0), mask=o < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
        return y
"""


def config(passes: int, warps: int) -> str:
    return f'triton.Config({{"BLOCK": 1024, "PASSES": {passes}}}, num_warps={warps})'


async def judged(pool: Pool, relu: Problem, *configs: str) -> Evaluation:
    result = await pool.evaluate(relu, KERNEL.replace("{configs}", ", ".join(configs)))
    assert result.status is Status.CORRECT, result.detail
    return result


@pytest.mark.anyio
async def test_the_fastest_configuration_that_compiles_is_priced(pool: Pool, relu: Problem) -> None:
    good, slow, impossible = config(1, 4), config(16, 4), config(1, 7)  # no GPU has 7 warps
    both: Any = await judged(pool, relu, slow, good)
    alone: Any = await judged(pool, relu, slow)
    fallen: Any = await judged(pool, relu, impossible, slow)
    assert both.candidate_us < alone.candidate_us
    assert fallen.candidate_us == pytest.approx(alone.candidate_us)
    assert [launch.registers > 0 for launch in fallen.launches] == [True]
