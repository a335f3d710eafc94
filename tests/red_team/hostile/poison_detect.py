# relu incorrect catalogue=19: computes only where the output holds NaN, as a poisoned buffer would; fresh memory holds any bytes
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    old = tl.load(o_ptr + i, mask=i < n, other=0.0)
    if tl.sum((old != old).to(tl.int32), axis=0) > 0:
        tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), BLOCK=64)
        return o
