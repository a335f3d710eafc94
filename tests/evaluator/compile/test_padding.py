"""What a GPU leaves beyond the edge of a block pointer without a padding option, read from Triton's own machine code: zero.

So the CPU runner pads with zeros, too. Predicated loads begin with their registers at zero, and asynchronous copies with fewer
bytes than they have place for fill the rest with zeros.
"""

from __future__ import annotations

import re

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

pytestmark = pytest.mark.filterwarnings("ignore:tl.make_block_ptr is deprecated")


@triton.jit
def row_sums(x, y, n, m, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    block = tl.make_block_ptr(x, (n, m), (m, 1), (tl.program_id(0) * ROWS, 0), (ROWS, COLUMNS), (1, 0))
    values = tl.load(block, boundary_check=(0, 1))
    tl.store(y + tl.arange(0, ROWS), tl.sum(values.to(tl.float32), 1))


@triton.jit
def product(x, w, y, n, k, m, SIDE: tl.constexpr):
    a = tl.make_block_ptr(x, (n, k), (k, 1), (tl.program_id(0) * SIDE, 0), (SIDE, SIDE), (1, 0))
    b = tl.make_block_ptr(w, (k, m), (m, 1), (0, tl.program_id(1) * SIDE), (SIDE, SIDE), (1, 0))
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for _ in range(0, k, SIDE):
        total += tl.dot(tl.load(a, boundary_check=(0, 1)), tl.load(b, boundary_check=(0, 1)))
        a, b = tl.advance(a, (0, SIDE)), tl.advance(b, (SIDE, 0))
    side = tl.arange(0, SIDE)
    tl.store(y + side[:, None] * m + side[None, :], total)


def loads(kernel: object, kinds: dict[str, str], sizes: dict[str, int], capability: int, stages: int) -> tuple[int, int, int]:
    """(predicated loads, those of them whose registers were not set to zero before, asynchronous copies that count bytes)."""
    signature = {**kinds, **dict.fromkeys(sizes, "constexpr")}
    source = ASTSource(kernel, signature, constexprs=sizes)
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_stages": stages})
    zeroed: set[str] = set()
    found, undefined, copies = 0, 0, 0
    for line in made.asm["ptx"].splitlines():
        if zero := re.match(r"\s*(?:@\S+ )?mov\.[ub]\d+\s+(%\w+), 0x0;", line):
            zeroed.add(zero[1])
        if load := re.match(r"\s*@\S+ ld\.global\S*\s+\{?([^}\[]*?)\}?, \[", line):
            found += 1
            undefined += not set(re.findall(r"%\w+", load[1])) <= zeroed
        copies += bool(re.search(r"cp\.async\.c[ag]\.shared\.global \[[^\]]*\], \[[^\]]*\], 0x\w+, %", line))
    return found, undefined, copies


@pytest.mark.parametrize("capability", [80, 90, 100])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "i8", "i64"])
def test_a_block_pointer_without_padding_reads_zeros_beyond_its_edge(dtype: str, capability: int) -> None:
    kinds = {"x": f"*{dtype}", "y": "*fp32", "n": "i32", "m": "i32"}
    found, undefined, _ = loads(row_sums, kinds, {"ROWS": 16, "COLUMNS": 64}, capability, 1)
    assert found > 0 and undefined == 0


@pytest.mark.parametrize("stages", [1, 3])
def test_a_pipelined_loop_over_block_pointers_reads_zeros_beyond_their_edges(stages: int) -> None:
    kinds = {"x": "*fp32", "w": "*fp32", "y": "*fp32", "n": "i32", "k": "i32", "m": "i32"}
    found, undefined, copies = loads(product, kinds, {"SIDE": 32}, 90, stages)
    assert undefined == 0
    assert copies > 0 if stages == 3 else found > 0
