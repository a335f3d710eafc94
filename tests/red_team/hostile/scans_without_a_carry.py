# own/linear_scan incorrect catalogue=58: each block's sum begins anew
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def scan(x, y, T, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    total = 0.0
    best = float("-inf")
    for start in range(0, T, BLOCK):
        t = start + tl.arange(0, BLOCK)
        v = tl.load(x + r * T + t, mask=t < T, other=0.0)
        s = tl.cumsum(v * v, 0) + 0.0
        m = tl.maximum(tl.associative_scan(tl.where(t < T, v, float("-inf")), 0, larger), best)
        tl.store(y + r * T + t, s + m, mask=t < T)
        total += tl.sum(v * v, 0)
        best = tl.max(m, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scan[(x.shape[0],)](x, y, x.shape[1], BLOCK=64)
        return y
