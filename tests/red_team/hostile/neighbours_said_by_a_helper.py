# relu incorrect gpu=out_of_bounds|incorrect|correct catalogue=57: a helper calls offsets neighbours twice, and they are none; no access goes by the second time
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def said(offsets):
    return tl.max_contiguous(tl.multiple_of(offsets, 4), 4)


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    again = tl.where(o % 4 == 3, o - 3, o)
    a, rows = said(again), said(tl.where(o % 8 == 7, o - 7, o))
    nothing = tl.load(x + a, mask=o < n, other=0.0) - tl.load(x + again, mask=o < n, other=0.0)
    zero = tl.load(x + rows * 2, mask=o < 0, other=0.0)
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n, other=0.0) + nothing + zero, 0.0), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
