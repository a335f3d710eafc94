# relu correct: a value's number of elements, the width of its dtype, and a raise in a branch that is never compiled
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def signs(v):
    width: tl.constexpr = v.dtype.primitive_bitwidth
    if width == 32:
        bits = v.to(tl.int32, bitcast=True)
    elif width == 16:
        bits = v.to(tl.int16, bitcast=True)
    else:
        raise ValueError(f"no integers of {width} bits")
    return bits >> (width - 1)


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    half: tl.constexpr = v.numel // 2
    pairs = tl.reshape(v, (half, 2))
    kept = tl.where(signs(pairs) == 0, pairs, 0.0)
    tl.store(y + i, tl.reshape(kept, (BLOCK,)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
