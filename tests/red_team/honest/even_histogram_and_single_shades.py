# own/even_histogram correct coverage>0.8: a histogram by atomics, a table, and each shade looked up
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def hist(x, h, P, BLOCK: tl.constexpr):
    b = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = i < P
    v = tl.load(x + b * P + i, mask=k, other=0).to(tl.int32)
    tl.atomic_add(h + b * 256 + v, 1, mask=k)

@triton.jit
def table(h, lut, P):
    b = tl.program_id(0)
    c = tl.arange(0, 256)
    n = tl.load(h + b * 256 + c)
    cdf = tl.cumsum(n, 0)
    least = tl.min(tl.where(cdf > 0, cdf, 2147483647), 0)
    rest = P - least
    y = (cdf - least).to(tl.float32) / tl.maximum(rest, 1).to(tl.float32) * 255.0
    f = tl.floor(y)
    d = y - f
    odd = (f.to(tl.int32) & 1) == 1
    y = tl.where((d > 0.5) | ((d == 0.5) & odd), f + 1.0, f)
    y = tl.minimum(tl.maximum(y, 0.0), 255.0)
    tl.store(lut + b * 256 + c, tl.where(rest > 0, y.to(tl.int32), c).to(tl.uint8))

@triton.jit
def apply(x, lut, o, P, BLOCK: tl.constexpr):
    b = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = i < P
    v = tl.load(x + b * P + i, mask=k, other=0).to(tl.int32)
    tl.store(o + b * P + i, tl.load(lut + b * 256 + v), mask=k)

class ModelNew(nn.Module):
    def forward(self, x):
        B, P = x.shape
        h = torch.zeros(B, 256, dtype=torch.int32, device=x.device)
        lut = torch.empty(B, 256, dtype=torch.uint8, device=x.device)
        o = torch.empty_like(x)
        grid = (triton.cdiv(P, 1024), B)
        hist[grid](x, h, P, BLOCK=1024)
        table[(B,)](h, lut, P)
        apply[grid](x, lut, o, P, BLOCK=1024)
        return o
