# own/centred_where_wide correct: its host code branches as that of the reference does
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, o, C, CENTRE: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < C
    v = tl.load(x + r * C + i, mask=m, other=0.0)
    if CENTRE:
        v = v - tl.sum(v, 0) / C
    v = tl.where(m, v, float("-inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + r * C + i, e / tl.sum(e, 0) * v, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        C = x.shape[1]
        k[(x.shape[0],)](x, o, C, CENTRE=C >= 1024, B=triton.next_power_of_2(C))
        return o
