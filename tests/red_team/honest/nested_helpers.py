# relu correct: helpers call helpers, with constants by keyword, tuples of results and a constant global
import torch
import torch.nn as nn
import triton
import triton.language as tl

LOW: tl.constexpr = 0.0
HALF = tl.constexpr(0.5)


@triton.jit
def lower(x, LIMIT: tl.constexpr = LOW):
    return tl.maximum(x, LIMIT)


@triton.jit
def both(x, SCALE: tl.constexpr):
    return lower(x) * SCALE, lower(x, LIMIT=0.0) * SCALE


@triton.jit
def offsets(BLOCK: tl.constexpr):
    return tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = offsets(BLOCK)
    a, b = both(tl.load(x_ptr + i, mask=i < n, other=0.0), SCALE=HALF)
    tl.store(o_ptr + i, a + b, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
