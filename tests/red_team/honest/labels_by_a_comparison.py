# own/labels_of_zero_or_one correct: labels are truth values, and a comparison chooses by them
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, t, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    a = tl.load(x + i, mask=m)
    y = tl.load(t + i, mask=m)
    a = tl.where(y > 0.5, -a, a)
    tl.store(o + i, tl.maximum(a, 0.0) + tl.log(1 + tl.exp(-tl.abs(a))), mask=m)


class ModelNew(nn.Module):
    def forward(self, x, t):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, t, o, x.numel(), B=1024)
        return o
