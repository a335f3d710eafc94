# relu correct: None for a pointer that the kernel tests, and an f-string in a static assertion
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, b_ptr, o_ptr, n, HAS: tl.constexpr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 16, f"BLOCK is {BLOCK}")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if b_ptr is not None:
        x += tl.load(b_ptr + i, mask=i < n)
    if HAS:
        x += 1
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, None, o, x.numel(), HAS=False, BLOCK=1024)
        return o
