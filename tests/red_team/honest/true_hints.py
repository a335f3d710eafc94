# relu correct: hints that hold at full shape
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    o = tl.max_contiguous(tl.multiple_of(o, BLOCK), BLOCK)
    tl.assume(n > 0)
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n, other=0.0), 0.0), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
