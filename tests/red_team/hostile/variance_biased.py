# own/variance incorrect catalogue=57: divides by the number, not by one less
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def variance(x, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < C
    v = tl.load(x + r * C + c, mask=m, other=0.0) + 100.0
    v = tl.where(m, v, 0.0)
    mean = tl.sum(v, 0) / C
    d = tl.where(m, v - mean, 0.0)
    tl.store(y + r, tl.sum(d * d, 0) / C)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        variance[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
