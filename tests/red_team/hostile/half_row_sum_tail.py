# own/row_sum_half incorrect cpu=implausible catalogue=58: leaves out the last block of a row; at the small shape there is none
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def row_sum(x, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, tl.minimum(C, 3584), BLOCK):
        o = start + tl.arange(0, BLOCK)
        acc += tl.load(x + r * C + o, mask=o < C, other=0.0).to(tl.float32)
    tl.store(y + r, tl.sum(acc, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        row_sum[(x.shape[0],)](x, y, x.shape[1], BLOCK=512)
        return y
