# own/row_sum_half incorrect catalogue=53: sums in half precision, which loses what a float32 result needs
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def row_sum(x, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float16)
    for start in range(0, C, BLOCK):
        o = start + tl.arange(0, BLOCK)
        acc += tl.load(x + r * C + o, mask=o < C, other=0.0)
    tl.store(y + r, tl.sum(acc, 0).to(tl.float32))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        row_sum[(x.shape[0],)](x, y, x.shape[1], BLOCK=512)
        return y
