# relu correct cpu=out_of_bounds catalogue=57: tells the compiler that no program is the first one; what it makes of that is open
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    tl.assume(tl.program_id(0) > 0)
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    v = tl.load(x + o, mask=m, other=0.0)
    tl.store(y + o, tl.maximum(v, 0.0), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
