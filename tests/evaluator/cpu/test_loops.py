"""Long loops are priced by two turns, and never below what any turn may cost."""

from __future__ import annotations

import random

import pytest

from rlkernel.evaluator.cpu import patches, pricing
from rlkernel.evaluator.cpu.between import Between
from rlkernel.evaluator.cpu.latency import Chain
from rlkernel.evaluator.cpu.loops import _turns
from rlkernel.evaluator.cpu.reuse import Reuse
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.trace.candidate import trace
from rlkernel.types import Precision, Problem, Status

KERNEL = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.maximum(tl.load(x + o, mask=o < n, other=0.0), 0.0)
    count = 0
    {loop}
    tl.store(y + o, tl.maximum(v, 0.0), mask=o < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""
READ = "v = tl.minimum(v, v + 0.0 * tl.load(x + (o + i) % n{mask}))"
FOR = "for i in range(n // 1024):\n        count += 1\n        {body}"


async def priced(pool: Pool, relu: Problem, loop: str) -> float:
    """Modelled time with a loop of 16,384 turns at full shape, and of a few at the small one."""
    result = await pool.evaluate(relu, KERNEL.replace("{loop}", loop))
    assert result.status is Status.CORRECT, result.detail
    assert result.candidate_us is not None
    return result.candidate_us


def body(mask: str = "") -> str:
    return FOR.replace("{body}", READ.replace("{mask}", mask))


@pytest.mark.anyio
async def test_a_long_loop_costs_as_much_as_all_of_its_turns(pool: Pool, relu: Problem) -> None:
    """Twice as many turns, twice the time; and a `while` that counts is the same loop."""
    once = await priced(pool, relu, body())
    assert await priced(pool, relu, body().replace("n // 1024", "n // 512")) == pytest.approx(2 * once, rel=0.02)
    while_ = f"i = 0\n    while i < n:\n        {READ.replace('{mask}', '').replace('+ i)', '+ i // 1024)')}\n        i += 1024"
    ways = ["i += 1024", "i = i + 1024", "i += 1024 * tl.num_programs(1)"]  # the grid has one program along that axis
    for way in ways:
        assert await priced(pool, relu, while_.replace("i += 1024", way)) == pytest.approx(once, rel=0.02), way


@pytest.mark.anyio
@pytest.mark.parametrize("turn", ["i == 777", "count == 777"])
async def test_what_one_turn_alone_does_costs_as_if_every_turn_did_it(pool: Pool, relu: Problem, turn: str) -> None:
    """Otherwise work could hide in a turn that is not followed, by the loop's variable or by a counter of its own."""
    always = await priced(pool, relu, body())
    branch = FOR.replace("{body}", f"if {turn}:\n            {READ.replace('{mask}', '')}")
    assert await priced(pool, relu, branch) >= 0.98 * always
    assert await priced(pool, relu, body(f", mask=(o < n) & ({turn}), other=0.0")) >= 0.98 * always


UNROLLED = "for i in tl.static_range({turns}):\n        {body}"


def followed(relu: Problem, loop: str) -> float:
    """The modelled time of a kernel that is not compiled."""
    h200 = profile_of("h200")
    full = prepare(relu.source, relu.name, h200, Precision.PYTORCH).variants[1]
    traces, _ = trace(KERNEL.replace("{loop}", loop), h200, [full])
    with patches.taken_back():  # other tests of this process compile
        rows, _ = pricing.Pricing(traces[0].program, h200, Precision.PYTORCH).rows(full.specs, {})
    return sum(row.us for row in rows)


def test_an_unrolled_loop_costs_as_much_as_all_of_its_turns(relu: Problem) -> None:
    """800 turns are shortened, and 40 are not; what one of 3,000 alone does costs as if each did it, or what it costs."""
    read = READ.replace("{mask}", "")
    few = followed(relu, UNROLLED.format(turns=40, body=read))
    assert followed(relu, UNROLLED.format(turns=800, body=read)) == pytest.approx(20 * few, rel=0.1)
    one = UNROLLED.format(turns=3000, body=f"v = v + 0.0 * i\n        if i == 777:\n            {read}")
    none = UNROLLED.format(turns=3000, body="v = v + 0.0 * i")
    assert followed(relu, one) >= followed(relu, none) + 0.9 * few / 40


PASSES = """{first}
    for again in range(3):
        for i in range(n // 1024):
            v = tl.minimum(v, v + 0.0 * {read})
            {step}
        {back}"""
BY_POINTERS = PASSES.format(first="q = x + tl.arange(0, BLOCK)", read="tl.load(q)", step="q += BLOCK", back="q -= n")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("first", "read", "step", "back"),
    [
        (
            "q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))", "tl.load(q)", "q = tl.advance(q, (BLOCK,))",
            "q = tl.advance(q, (-n,))",
        ),
        ("q = tl.make_tensor_descriptor(x, [n], [1], [BLOCK]); at = 0", "q.load([at])", "at += BLOCK", "at -= n"),
    ],
)  # fmt: skip
async def test_a_block_that_is_set_back_after_a_long_loop_costs_as_pointers_do(
    pool: Pool, relu: Problem, first: str, read: str, step: str, back: str
) -> None:
    """Where it is then, nobody knows: it is not outside, and reads from there cost as much as any other."""
    passes = PASSES.format(first=first, read=read, step=step, back=back)
    assert await priced(pool, relu, passes) == pytest.approx(await priced(pool, relu, BY_POINTERS), rel=0.02)


def test_turns_of_a_loop_that_counts() -> None:
    """ceil(100 / 32) = 4; 0, 32, 64 and 96 are at most 96; 8, 6, 4 and 2 are above 0; a loop without end has none."""
    assert [_turns("Lt", 0, 100, 32), _turns("LtE", 0, 96, 32), _turns("Gt", 8, 0, -2), _turns("Lt", 0, 8, -1)] == [4, 4, 4, 0]


class Pricing:
    """What counts the turns of a loop of 100, of which the last stores 8 of 32 bytes."""

    def __init__(self) -> None:
        self.counts = Counts(stored={0: 32.0}, left_out={0: 0.0})
        self.reuse, self.chain, self.drawn_turns = Reuse(), Chain(), random.Random(0)


@pytest.mark.parametrize(
    ("stores", "drawn", "stored", "left_out"),
    [
        ([32.0], 1, 40.0 + 98 * 32, 24.0),  # as the first one, so that no other is drawn
        ([8.0, 20.0, 32.0], 3, 40.0 + 98 * 32, 24.0),
        ([0.0] * 6, 6, 40.0 + 98 * 8, 24.0 * 99),  # the first stands for no other
        ([8.0, 20.0, 8.0, 8.0, 8.0, 8.0], 6, 40.0 + 98 * 20, 24.0 + 98 * 12),
    ],
)
def test_turns_between_store_as_much_as_the_most_that_a_drawn_one_does(
    stores: list[float], drawn: int, stored: float, left_out: float
) -> None:
    machine, last = Pricing(), Counts(stored={0: 8.0}, left_out={0: 24.0})
    whole, reuse, chain = machine.counts, machine.reuse, machine.chain
    whole.add(last, 99)
    between, seen = Between(machine, {0: 32.0}, last), 0
    while between.goes_on():
        assert 1 <= between.number(1, 99) < 99
        machine.counts.store(0, int(stores[seen]), 0)
        seen += 1
    between.end(whole, 98)
    assert (seen, whole.stored, whole.left_out) == (drawn, {0: stored}, {0: left_out})
    assert (machine.reuse, machine.chain) == (reuse, chain)


def test_no_turn_is_drawn_where_the_last_stores_as_much_as_the_first_or_nothing() -> None:
    for size in (32.0, 0.0):
        assert not Between(Pricing(), {0: 32.0}, Counts(stored={0: size}, left_out={0: 32.0 - size})).goes_on()
