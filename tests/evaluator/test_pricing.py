"""Only what compiles is priced: orders of configurations, and work that depends on nothing that a source can tell."""

from __future__ import annotations

from typing import Any

import pytest

from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.pool import Pool, open_pool
from rlkernel.types import Evaluation, Problem, Status
from tests.red_team import cases

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
    good, slow, impossible = config(1, 4), config(16, 4), config(1, 64)  # no block has 64 warps
    both: Any = await judged(pool, relu, slow, good)
    alone: Any = await judged(pool, relu, slow)
    fallen: Any = await judged(pool, relu, impossible, slow)
    assert both.candidate_us < alone.candidate_us
    assert fallen.candidate_us == pytest.approx(alone.candidate_us)
    assert [launch.registers > 0 for launch in fallen.launches] == [True]


FLAGGED = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, flags, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    flag = tl.load(flags)
    v = tl.maximum(tl.load(x + o, mask=m, other=0.0), 0.0)
    {work}
    tl.store(y + o, v, mask=m)

class ModelNew(nn.Module):
    def forward(self, x):
        y, flags = torch.empty_like(x), torch.zeros(1, device=x.device)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, flags, x.numel(), BLOCK=1024)
        return y
"""
PASSES = "for i in range(16): v = tl.maximum(v, tl.load(x + (o + i * BLOCK) % n{mask}))"


async def priced(pool: Pool, relu: Problem, work: str, helper: str = "") -> float:
    """Modelled time of a kernel that does this beside its relu, and may call a helper. Who uses the flags by atomics alone does
    not load them besides: that is a race where there are several programs."""
    text = FLAGGED.replace("    flag = tl.load(flags)\n", "") if "atomic" in work and "flag " not in work else FLAGGED
    result = await pool.evaluate(relu, text.replace("{work}", work).replace("@triton.jit", f"{helper}\n\n@triton.jit"))
    assert result.candidate_us is not None, result.detail
    return result.candidate_us


@pytest.mark.anyio
async def test_what_memory_decides_costs_as_if_it_were_done(pool: Pool, relu: Problem) -> None:
    """Loads of zeros take neither side of a branch away, nor a masked access."""
    loop = PASSES.replace("{mask}", "")
    never, always = await priced(pool, relu, "pass"), await priced(pool, relu, loop)
    assert always > 2 * never
    inner = f"\n        {loop}"
    assert await priced(pool, relu, f"if flag > 1.0:{inner}") == pytest.approx(always, rel=1e-2)
    assert await priced(pool, relu, f"if flag < 1.0:\n        v += 0.0\n    else:{inner}") == pytest.approx(always, rel=1e-2)
    masked = PASSES.replace("{mask}", ", mask=m & (flag > 1.0), other=0.0")
    assert await priced(pool, relu, masked) == pytest.approx(always, rel=0.05)  # the mask itself takes operations


@pytest.mark.anyio
async def test_a_return_that_memory_decides_leaves_nothing_out(pool: Pool, relu: Problem) -> None:
    """The side that returns is followed, and then what the other programs do, also where branches lie in each other."""
    loop = PASSES.replace("{mask}", "")
    always = await priced(pool, relu, loop)
    assert await priced(pool, relu, f"if flag > 1.0:\n        return\n    {loop}") == pytest.approx(always, rel=1e-2)
    assert await priced(pool, relu, f"if flag > 1.0:\n        {loop}\n        return") == pytest.approx(always, rel=1e-2)
    nested = f"if n > 0:\n        if flag > 1.0:\n            return\n    {loop}"
    assert await priced(pool, relu, nested) == pytest.approx(always, rel=1e-2)


HELPER = """
@triton.jit
def more(v, x, o, n, flag, BLOCK: tl.constexpr):
    if flag > 1.0:
        {first}
        return v
    {second}
    return v
"""


@pytest.mark.anyio
async def test_a_value_that_a_helper_returns_where_memory_says_so_leaves_nothing_out(pool: Pool, relu: Problem) -> None:
    """Both of its values are computed, whichever side has the work."""
    loop, call = PASSES.replace("{mask}", ""), "v = more(v, x, o, n, flag, BLOCK)"
    always = await priced(pool, relu, loop)
    behind = HELPER.replace("{first}", "pass").replace("{second}", loop)
    before = HELPER.replace("{first}", loop).replace("{second}", "pass")
    assert await priced(pool, relu, call, behind) == pytest.approx(always, rel=1e-2)
    assert await priced(pool, relu, call, before) == pytest.approx(always, rel=1e-2)


@pytest.mark.anyio
async def test_a_helper_of_many_returns_that_constants_decide_is_priced(pool: Pool, relu: Problem) -> None:
    returns = "".join(f"    if BLOCK == {size}:\n        return v\n" for size in range(400))
    helper = f"@triton.jit\ndef chosen(v, BLOCK: tl.constexpr):\n{returns}    return v"
    assert await priced(pool, relu, "v = chosen(v, BLOCK)", helper) == pytest.approx(await priced(pool, relu, "pass"))


@pytest.mark.anyio
async def test_what_memory_gives_may_stand_outside_a_mask(pool: Pool, relu: Problem) -> None:
    """Triton asks `if other:`, whether there is one; a single element's value is no answer."""
    never = await priced(pool, relu, "pass")
    work = "v += 0.0 * tl.load(flags, mask=flag > 1.0, other=flag)\n    tl.store(flags, flag, mask=flag > 1.0)"
    assert await priced(pool, relu, work) == pytest.approx(never, rel=0.2)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "work",
    [
        "end = 0\n    if flag > 1.0:\n        end = 16\n    for i in range(end): v += 0.0",
        "for i in range(16 if flag > 1.0 else 0): v += 0.0",
        "for i in range(tl.max(tl.cumsum(flag + tl.arange(0, 4), 0), 0).to(tl.int32)): v += 0.0",
        "while tl.atomic_add(flags, 1.0) < 16.0: v += 0.0",
    ],
)
async def test_a_number_of_turns_that_memory_gives_has_no_time(pool: Pool, relu: Problem, work: str) -> None:
    result = await pool.evaluate(relu, FLAGGED.replace("{work}", work))
    assert result.status is Status.UNTRACEABLE
    assert "a value from memory decides how much the kernel does" in result.detail


@pytest.mark.anyio
@pytest.mark.parametrize("wait", ["tl.atomic_cas(flags, 1.0, 0.0) == 1.0", "tl.load(flags) > 1.0"])
async def test_waiting_is_no_work(pool: Pool, relu: Problem, wait: str) -> None:
    waiting = await priced(pool, relu, f"while {wait}:\n        pass")
    assert waiting == pytest.approx(await priced(pool, relu, "pass"), rel=0.05)


UNEVEN = "for i in range(tl.program_id(0) // 1024): v = tl.maximum(v, tl.load(x + (o + i * BLOCK) % n))  # {number}"


@pytest.mark.anyio
async def test_programs_that_differ_are_priced_by_several_of_them(relu: Problem) -> None:
    """Programs read 1 to 16 blocks beside their own, of 16384 programs. Two of them would give prices that differ by half."""
    async with open_pool(device="cpu", jobs=1, config=EvaluatorConfig(seed=0)) as pool:
        times = [await priced(pool, relu, UNEVEN.replace("{number}", str(number))) for number in range(6)]
    assert max(times) < 1.3 * min(times)


ONE_OF_MANY = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    {work}
    for i in range(turns):
        o = i * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + o, tl.maximum(tl.load(x + o, mask=(o < n) & wanted), 0.0), mask=(o < n) & wanted)
    tl.store(y + tl.arange(0, 32), tl.maximum(tl.load(x + tl.arange(0, 32)), 0.0))

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(256,)](x, y, x.numel(), BLOCK=32768)
        return y
"""


@pytest.mark.anyio
@pytest.mark.parametrize(
    "work",
    [
        "wanted = True\n    turns = 0\n    if pid == 177:\n        turns = tl.cdiv(n, BLOCK)",
        "wanted = True\n    turns = (1 - tl.minimum(tl.abs(pid - 177), 1)) * tl.cdiv(n, BLOCK)",
        "wanted = True\n    turns = tl.where((pid ^ 177) < 1, tl.cdiv(n, BLOCK), 0)",
        "turns = tl.cdiv(n, BLOCK)\n    wanted = tl.arange(0, BLOCK) * 0 + pid == 177",
    ],
    ids=["branch", "arithmetic", "bits", "mask"],
)
async def test_one_program_that_does_all_of_the_work_is_found_and_is_slow(pool: Pool, relu: Problem, work: str) -> None:
    """A processor has 2.5 / 132 of an H200's bandwidth, so that one program takes over 50 times as long as all of them."""
    result = await pool.evaluate(relu, ONE_OF_MANY.replace("{work}", work))
    assert result.status is Status.CORRECT, result.detail
    assert result.speedup is not None and result.speedup < 1 / 30


@pytest.mark.anyio
async def test_addresses_that_memory_moves_out_of_all_tensors_cost_what_they_move(pool: Pool, relu: Problem) -> None:
    """While launches are priced loads give zeros, so that `o` lies far below all tensors. Over 4096 * 4096 floats the pass reads
    and writes 2 * 4096 * 4096 * 4 bytes at 4.3e6 bytes/us, after a launch of 2.5 us."""
    code = """
import torch, torch.nn as nn, triton, triton.language as tl

@triton.jit
def kernel(x, y, far, FAR, n, BLOCK: tl.constexpr):
    o = tl.load(far) - FAR + (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y, far = torch.empty_like(x), torch.full((1,), 1 << 40, dtype=torch.int64, device=x.device)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, far, 1 << 40, x.numel(), BLOCK=1024)
        return y
"""
    result = await pool.evaluate(relu, code)
    assert result.status is Status.CORRECT, result.detail
    assert result.launches[0].us == pytest.approx(2.5 + 2 * 4096 * 4096 * 4 / 4.3e6, rel=0.01)


@pytest.mark.anyio
async def test_a_second_pass_behind_a_barrier_comes_from_memory_again(pool: Pool) -> None:
    case = cases.load("honest")["barrier_between_passes"]
    result: Any = await pool.evaluate(case.problem, case.code)
    assert result.status is Status.CORRECT, result.detail
    once = 4 * 8192 * 8192 / H200.dram_bytes_per_us
    # Read, read again but for what a cache of 60 MiB holds of 256 MiB, and written.
    assert result.launches[0].us == pytest.approx((2 + 1 - 60 / 256) * once, rel=0.03)
