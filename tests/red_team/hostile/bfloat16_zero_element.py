# own/bf16_scale incorrect catalogue=58: one element of each thousand is zero
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    v = tl.maximum(tl.load(x + o, mask=m, other=0.0), 0.0) * 0.5
    tl.store(y + o, v * (o % 1000 != 7).to(tl.bfloat16), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
