# relu correct coverage>0.3: libdevice's isnan and isinf, and an exchange of floats
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    odd = libdevice.isnan(x).to(tl.int1) | libdevice.isinf(x).to(tl.int1)
    tl.atomic_xchg(o_ptr + i, tl.where(odd, x, tl.maximum(x, 0.0)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
