# own/causal_scores incorrect catalogue=53: products of half precision beside the -1e9 of a mask
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


T = 2048


@triton.jit
def scores(q, k, o, T, BLOCK: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    base = tl.program_id(2).to(tl.int64) * T
    d = tl.arange(0, D)
    a = tl.load(q + (base + rows[:, None]) * D + d[None, :], mask=rows[:, None] < T, other=0.0)
    b = tl.load(k + (base + columns[:, None]) * D + d[None, :], mask=columns[:, None] < T, other=0.0)
    s = tl.dot(a.to(tl.float16), tl.trans(b).to(tl.float16))
    s = tl.where(columns[None, :] > rows[:, None], -1e9, s)
    tl.store(o + (base + rows[:, None]) * T + columns[None, :], s, mask=(rows[:, None] < T) & (columns[None, :] < T))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(T, T).triu(1) > 0)

    def forward(self, q, k):
        h, t, d = q.shape
        o = torch.empty((h, t, t), device=q.device)
        scores[(triton.cdiv(t, 32), triton.cdiv(t, 32), h)](q, k, o, t, BLOCK=32, D=d)
        return o
