# relu out_of_bounds gpu=out_of_bounds|incorrect|correct catalogue=57: says that offsets are multiples of 16, which they are not
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.multiple_of(tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK), 16)
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n, other=0.0), 0.0), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1023),)](x, y, x.numel(), BLOCK=1024)
        return y
