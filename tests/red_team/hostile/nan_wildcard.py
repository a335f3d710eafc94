# relu incorrect catalogue=25,62: NaN everywhere, which compares equal where NaN is a wildcard
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    zero = tl.load(x_ptr + i, mask=i < n) * 0.0
    tl.store(o_ptr + i, zero / zero, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
