"""Second looks at real kernels: what is asked again, and what is not."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from rlkernel.evaluator.messages.children import CompileRequest, Extent, PriceRequest, RunRequest, TooLarge, TraceRequest
from rlkernel.evaluator.pool import Pool
from rlkernel.types import Problem, Status

REFERENCE = """
import torch
import torch.nn as nn
ROWS, COLS = 64, 16384
SMALL = {"ROWS": 3, "COLS": 100}
class Model(nn.Module):
    def forward(self, x):
        return x.sum(1)
def get_inputs():
    return [torch.randn(ROWS, COLS)]
def get_init_inputs():
    return []
"""
SUM = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def total(x, y, n, BLOCK: tl.constexpr):
    s = 0.0
    {loop}
        i = start + tl.arange(0, BLOCK)
        s {sign} tl.sum(tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0), axis=0)
        {step}
    tl.store(y + tl.program_id(0), s)

class ModelNew(nn.Module):
    def forward(self, x):
        y = x.new_empty(x.shape[0])
        total[(x.shape[0],)](x, y, x.shape[1], BLOCK={block})
        return y
"""
LOOPS = {
    "for start in range(0, n, BLOCK):": "",
    "for start in tl.range(0, n, BLOCK):": "",
    "start = 0\n    while start < n:": "start += BLOCK",
    "start = 0\n    while (start < n) & (start >= 0):": "start += BLOCK",
}


@pytest.mark.anyio
@pytest.mark.parametrize(("loop", "block"), [*itertools.product(LOOPS, (128, 2048)), *((loop, 8192) for loop in [*LOOPS][:1])])
async def test_a_sum_that_keeps_its_last_block_is_wrong_whatever_the_block(pool: Pool, loop: str, block: int) -> None:
    """Every block is longer than the 100 columns at which sums are compared first, and shorter than the 16384 there are."""
    problem = Problem("sum", 1, "train", REFERENCE)
    code = SUM.replace("{loop}", loop).replace("{step}", LOOPS[loop]).replace("{block}", str(block))
    wrong = await pool.evaluate(problem, code.replace("{sign}", "="))
    assert wrong.status is Status.INCORRECT, wrong.detail
    assert wrong.sizes["COLS"] > block
    right = await pool.evaluate(problem, code.replace("{sign}", "+="))
    assert right.status is Status.CORRECT, right.detail
    assert right.sizes == {"ROWS": 3, "COLS": 100}


TUNER = """@triton.autotune(
    configs=[triton.Config({"BLOCK": block}) for block in (128, 256, 512)], key=["n"],
    prune_configs_by={"early_config_prune": lambda configs, nargs, **kwargs: configs[1:] if nargs["rows"] == 64 else configs},
)
@triton.jit"""


@pytest.fixture
def asked(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The questions to children, each with its answer."""
    made: list[Any] = []
    job = pool._stages.job

    async def noted(kind: str, question: Any, *rest: Any, **more: Any) -> Any:
        answer = await job(kind, question, *rest, **more)
        made.append((question, answer[0]))
        return answer

    monkeypatch.setattr(pool._stages, "job", noted)
    return made


@pytest.mark.anyio
async def test_what_is_known_at_full_shape_is_not_found_again(pool: Pool, asked: list[Any]) -> None:
    """A second look traces one size, and neither compiles nor prices. Configurations are those that are kept at full shape."""
    code = SUM.replace("{loop}", "for start in range(0, n, BLOCK):").replace("{step}", "").replace("{sign}", "+=")
    code += "# no other test judges this text\n"
    tuned = code.replace("@triton.jit", TUNER).replace("n, BLOCK: tl", "n, rows, BLOCK: tl")
    tuned = tuned.replace("BLOCK={block}", "x.shape[0]")
    for text, first in ((code.replace("{block}", "128"), []), (tuned, [PriceRequest])):
        asked.clear()
        found = await pool.evaluate(Problem("sum", 1, "train", REFERENCE), text)
        assert found.status is Status.CORRECT, found.detail
        kinds = [type(question) for question, _ in asked]
        assert kinds == [TraceRequest, *first, CompileRequest, RunRequest, TraceRequest, RunRequest]
        (ran, told), (traced, _), (again, left) = asked[-3:]
        assert (len(asked[0][0].variants), len(traced.variants)) == (2, 1)
        assert (ran.priced, again.priced, left.priced) == (None, told.priced, None)
        assert (again.full, again.configs) == (ran.full, ran.configs)
        counts = [len(launch.configs) for request in (ran, again) for launch in request.program.launches]
        assert counts == ([2, 2] if first else [1, 1])
        assert (told.short, left.short) == ((Extent(0, 3, 2, 2),), ())


@pytest.mark.anyio
async def test_a_look_whose_figures_count_prices_the_candidate_itself(pool: Pool, asked: list[Any]) -> None:
    """It is made for 16384 columns, not as a number of its text, so that it fails at 100 of them; it is compiled once."""
    code = SUM.replace("{loop}", "for start in range(0, n, BLOCK):").replace("{step}", "").replace("{sign}", "+=")
    code = code.replace("x.shape[1], BLOCK={block}", "int('16384'), BLOCK=128")
    found = await pool.evaluate(Problem("sum", 1, "train", REFERENCE), code)
    assert (found.status, found.sizes["COLS"]) == (Status.CORRECT, 16384)
    kinds = [type(question) for question, _ in asked if not isinstance(question, TraceRequest)]
    assert (kinds.count(CompileRequest), kinds.count(PriceRequest)) == (1, 0)
    runs = [(question, answer) for question, answer in asked if isinstance(question, RunRequest)]
    assert isinstance(runs[0][1], TooLarge)  # all rows at once
    first, rest = runs[1][0], runs[2][0]  # of the look: it is doubted
    assert (first.priced, rest.before, rest.priced is not None) == (None, len(first.rounds), True)


@pytest.mark.anyio
async def test_what_fails_at_full_shape_is_run_once(pool: Pool, asked: list[Any]) -> None:
    """1.7 million programs of 2,048 elements each count beyond 32 bits, and come back below the tensor; none does at 300."""
    code = """
import torch, triton
import triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double[(x.numel(),)](x, y, x.numel(), BLOCK=2048)
        return y
"""
    reference = REFERENCE.replace("ROWS, COLS = 64, 16384", "ROWS, COLS = 128, 13000").replace("x.sum(1)", "x * 2")
    found = await pool.evaluate(Problem("double", 1, "train", reference), code)
    assert (found.status, [type(question) for question, _ in asked].count(TraceRequest)) == (Status.OUT_OF_BOUNDS, 1), (
        found.detail
    )


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("forward", "work", "correct"),
    [
        ("x.sum(1, keepdim=True)", "tl.store(y + row, tl.sum(tl.load(x + at, mask=i < n, other=1.0)))", True),
        ("x * 2", "tl.store(y + at, 3 * tl.load(x + at, mask=i < n), mask=i < n)", False),
    ],
)
async def test_who_is_wrong_element_by_element_is_looked_at_no_more_where_blocks_are_filled(
    pool: Pool, asked: list[Any], forward: str, work: str, correct: bool
) -> None:
    """A mask leaves out 28 of 128 elements at the first sizes, and none at full shape. A sum that takes those for 1 is right;
    where each element goes its own way, they change no other one."""
    code = f"""
import torch, triton
import triton.language as tl

@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    at = row * n + i
    {work}

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x.new_empty(x.shape[0], {"1" if correct else "x.shape[1]"})
        rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
    found = await pool.evaluate(Problem("rows", 1, "train", REFERENCE.replace("x.sum(1)", forward)), code)
    traces = [type(question) for question, _ in asked].count(TraceRequest)
    assert (found.correct, traces > 1) == (correct, correct), found.detail
