# relu correct coverage>0.8: a grid of four times the programs that have work
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    if tl.program_id(0) * BLOCK >= n:
        return
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    v = tl.load(x + o, mask=m, other=0.0)
    tl.store(y + o, tl.maximum(v, 0.0), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(4 * triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
