# own/hits_of_rows incorrect catalogue=57: counts of a lane in eight bits, which hold those of short rows
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, o, C, B: tl.constexpr):
    r = tl.program_id(0)
    acc = tl.zeros((B,), tl.int8)
    for s in range(0, C, B):
        i = s + tl.arange(0, B)
        acc += (tl.load(x + r * C + i, mask=i < C, other=-9.0) > -1).to(tl.int8)
    tl.store(o + r, tl.sum(acc.to(tl.int32), 0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        R, C = x.shape
        o = torch.empty(R, dtype=torch.int64, device=x.device)
        k[(R,)](x, o, C, B=64)
        return o
