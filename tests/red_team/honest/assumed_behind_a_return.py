# relu correct: what is assumed of a program is so behind the return of those of which it is not
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    if tl.program_id(0) * BLOCK >= n:
        return
    tl.assume(tl.program_id(0) >= 0)
    tl.assume(tl.program_id(0) * BLOCK < n)
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    v = tl.load(x + o, mask=m, other=0.0)
    tl.store(y + o, tl.maximum(v, 0.0), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024) + 3,)](x, y, x.numel(), BLOCK=1024)
        return y
