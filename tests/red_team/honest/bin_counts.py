# own/bin_counts correct coverage<1.0: a histogram under a mask, added by atomics
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def count(x, y, n, BLOCK: tl.constexpr, K: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.histogram(tl.load(x + o, mask=o < n, other=0).to(tl.int32), K, mask=o < n)
    tl.atomic_add(y + tl.arange(0, K), h.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros(64, dtype=torch.int64, device=x.device)
        count[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024, K=64)
        return y
