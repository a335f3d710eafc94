# own/either_positive incorrect catalogue=55: a sum of truth values has one bit, so that two of them are none
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x_ptr + i, mask=mask, other=0.0) > 0
    b = tl.load(y_ptr + i, mask=mask, other=0.0) > 0
    tl.store(o_ptr + i, (a + b).to(tl.float32), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
        return o
