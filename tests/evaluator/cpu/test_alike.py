"""Launches that are alike are priced once, wherever their tensors begin; what lies outside of the memory there is seen."""

from __future__ import annotations

from typing import Any

import pytest

from rlkernel.evaluator.cpu import patches
from rlkernel.evaluator.cpu.interpreter import Interpreter
from rlkernel.evaluator.cpu.memory import OutOfBounds
from rlkernel.evaluator.cpu.pricing import Pricing
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.trace.candidate import trace
from rlkernel.types import Precision

ROWS = 64
PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(64, 512)]

def get_init_inputs():
    return []
"""
KERNEL = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n, other=0.0)
    tl.store(y + o, tl.maximum(v, 0.0), mask=o < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        for row in range(x.shape[0]):
            kernel[(1,)](x[row], y[row], {n}, BLOCK={block})
        return y
"""


def followed(monkeypatch: pytest.MonkeyPatch, code: str) -> tuple[int, list[float]]:
    """How many launches are followed, and the times of all."""
    count = 0
    price = Interpreter.price

    def counted(self: Interpreter, *args: Any) -> Any:
        nonlocal count
        count += 1
        return price(self, *args)

    monkeypatch.setattr(Interpreter, "price", counted)
    h200 = profile_of("h200")
    full = prepare(PROBLEM, "rows", h200, Precision.PYTORCH).variants[1]
    traces, _ = trace(code, h200, [full])
    with patches.taken_back():  # other tests of this process compile
        pricing = Pricing(traces[0].program, h200, Precision.PYTORCH)
        rows, unwritten = pricing.rows(full.specs, {})
    assert not unwritten
    assert pricing.shares.inputs == (1.0,)
    return count, [row.us for row in rows if row.function is not None]


def test_rows_that_are_taken_one_after_the_other_are_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is read and written, and each launch takes as long."""
    count, times = followed(monkeypatch, KERNEL.format(n=512, block=512))
    assert count == 1
    assert len(times) == ROWS
    assert len(set(times)) == 1


def test_other_numbers_are_other_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch with a number of its own is followed on its own."""
    code = KERNEL.format(n="512 - 0 * row if row % 2 else x.shape[1]", block=512)
    assert followed(monkeypatch, code)[0] == 1
    code = KERNEL.format(n="512 + row", block=512).replace("o < n", "(o < n) & (o < 512)")
    assert followed(monkeypatch, code)[0] == ROWS


def test_the_last_row_may_not_be_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row too long lies in the next row everywhere but in the last one."""
    with pytest.raises(OutOfBounds):
        followed(monkeypatch, KERNEL.format(n=640, block=1024))
