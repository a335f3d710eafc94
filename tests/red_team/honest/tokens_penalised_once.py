# own/tokens_penalised correct: all that name a token store the same number
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy(x, o, N, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < N), mask=i < N)


@triton.jit
def pen(x, ids, o, V, T, B: tl.constexpr):
    b = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < T
    t = tl.load(ids + b * T + i, mask=m, other=0)
    s = tl.load(x + b * V + t, mask=m)
    tl.store(o + b * V + t, tl.where(s < 0, s * 1.2, s / 1.2), mask=m)


class ModelNew(nn.Module):
    def forward(self, logits, ids):
        B, V = logits.shape
        T = ids.shape[1]
        o = torch.empty_like(logits)
        copy[(triton.cdiv(B * V, 1024),)](logits, o, B * V, B=1024)
        pen[(B,)](logits, ids, o, V, T, B=triton.next_power_of_2(T))
        return o
