# relu correct: a global constant times, minus and above what was loaded is a tensor, also where a helper and a choice take it
import torch
import torch.nn as nn
import triton
import triton.language as tl

HALF = tl.constexpr(0.5)
NOTHING = tl.constexpr(0.0)


@triton.jit
def doubled(x):
    return 2 * tl.sigmoid(HALF - x) * 0 + 2 * (HALF * x)


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.where(NOTHING > v, NOTHING, doubled(HALF * (v + v))), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
