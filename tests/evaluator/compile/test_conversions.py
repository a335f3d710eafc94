"""What Triton's own machine code makes of a conversion to 8 bits: one to 16 bits, of which the lower half is stored. So the CPU
runner does the same (`cpu.numbers.to_integers`)."""

from __future__ import annotations

import re

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def convert(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n).to(y.dtype.element_ty), mask=i < n)


@pytest.mark.parametrize("capability", [80, 90, 100])
@pytest.mark.parametrize(("kind", "wide"), [("i8", "s16"), ("u8", "u16"), ("i16", "s16"), ("u16", "u16"), ("i32", "s32")])
def test_8_bits_are_converted_by_way_of_16(kind: str, wide: str, capability: int) -> None:
    signature = {"x": "*fp32", "y": f"*{kind}", "n": "i32", "BLOCK": "constexpr"}
    made = triton.compile(ASTSource(convert, signature, constexprs={"BLOCK": 128}), target=GPUTarget("cuda", capability, 32))
    assert set(re.findall(r"cvt\.rzi\.(\w+)\.f32", made.asm["ptx"])) == {wide}
