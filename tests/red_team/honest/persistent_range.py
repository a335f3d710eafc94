# relu correct: a persistent kernel with a strided range of 64 bits
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    for block in tl.range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        o = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n, other=0.0), 0.0), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(min(528, triton.cdiv(x.numel(), 1024)),)](x, y, x.numel(), BLOCK=1024)
        return y
