# relu correct: a helper that returns early, tuples, methods of tensors
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def parts(v, low: tl.constexpr = 0.0):
    if low > 1.0:
        return v, v
    return tl.maximum(v, low), v.to(tl.float32)


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    if tl.program_id(0) * BLOCK >= n:
        return
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = 0.0
    for i in range(2):
        total += i.to(tl.float32)
    v, w = parts(tl.load(x + o, mask=o < n, other=0.0))
    tl.store(y + o, v * total + 0.0 * w.sum(axis=0), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024) + 1,)](x, y, x.numel(), BLOCK=1024)
        return y
