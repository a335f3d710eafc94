"""Blocks beyond the edge of a block pointer or a descriptor: what is stored does not depend on which programs are drawn."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.cpu import patches
from rlkernel.evaluator.cpu.language import the_machine
from rlkernel.evaluator.cpu.pricing import Pricing, Stores
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.program.tensors import meta_tensors
from rlkernel.evaluator.trace.candidate import trace
from rlkernel.types import Precision

ROWS, COLUMNS = 500, 840
PROBLEM = f"""
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn({ROWS}, {COLUMNS})]

def get_init_inputs():
    return []
"""
KERNEL = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, rows, columns, width, BLOCK: tl.constexpr):
    row, column = tl.program_id(1) * BLOCK, tl.program_id(0) * BLOCK
    at = row + tl.arange(0, BLOCK)[:, None], column + tl.arange(0, BLOCK)[None, :]
    v = tl.load(x + at[0] * columns + at[1], mask=(at[0] < rows) & (at[1] < columns), other=0.0)
    {store}

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, columns = x.shape
        kernel[(triton.cdiv(columns, 64), triton.cdiv(rows, 64))](x, y, rows, columns, columns - {less}, BLOCK=64)
        return y
"""
POINTER = "q = tl.make_block_ptr(y, (rows, width), (columns, 1), ({row}, {column}), (BLOCK, BLOCK), (1, 0))"
STORE = "tl.store(q, tl.maximum(v, 0.0), boundary_check=(0, 1))"
STORES = {
    "a block pointer": f"{POINTER.format(row='row', column='column')}\n    {STORE}",
    "one that is advanced": f"{POINTER.format(row=0, column='column')}\n    q = tl.advance(q, (row, 0))\n    {STORE}",
    "a tensor descriptor": "q = tl.make_tensor_descriptor(y, [rows, width], [columns, 1], [BLOCK, BLOCK])\n"
    "    q.store([row, column], tl.maximum(v, 0.0))",
}


def stored(code: str, draws: int) -> list[tuple[float, bool]]:
    """The bytes that are seen to be written, and whether they are too few, by each of so many draws of programs."""
    h200 = profile_of("h200")
    full = prepare(PROBLEM, "edges", h200, Precision.PYTORCH).variants[1]
    traces, _ = trace(code, h200, [full])
    found = []
    with patches.taken_back():  # other tests of this process compile
        for draw in range(draws):
            machine, _ = the_machine()
            machine.draw_from(f"draw {draw}")
            stores = Stores()
            inputs = meta_tensors(full.specs.inputs)
            _, outputs = Pricing(traces[0].program, h200, Precision.PYTORCH).follow([], inputs, {}, stores=stores)
            (one,) = stores._of.values()
            found.append((one.written, stores.too_few(outputs[0], ROWS * COLUMNS * 4)))
    return found


@pytest.mark.filterwarnings("ignore:tl.make_block_ptr is deprecated")
@pytest.mark.parametrize("how", STORES)
def test_programs_at_the_edges_are_counted_and_not_drawn(how: str) -> None:
    """8 rows and 14 columns of blocks of 64: the last are 52 and 8 wide. Two programs of 112 would tell too little, or too much,
    where one of them is at the right edge."""
    found = stored(KERNEL.replace("{store}", STORES[how]).replace("{less}", "0"), 20)
    assert {too_few for _, too_few in found} == {False}
    assert [written for written, _ in found] == pytest.approx([ROWS * COLUMNS * 4] * 20)


@pytest.mark.filterwarnings("ignore:tl.make_block_ptr is deprecated")
@pytest.mark.parametrize("how", STORES)
def test_columns_behind_an_edge_that_comes_too_early_are_too_few_in_every_draw(how: str) -> None:
    found = stored(KERNEL.replace("{store}", STORES[how]).replace("{less}", "72"), 20)
    assert {too_few for _, too_few in found} == {True}
    assert [written for written, _ in found] == pytest.approx([ROWS * (COLUMNS - 72) * 4] * 20)
