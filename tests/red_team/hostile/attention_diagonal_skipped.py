# own/attention incorrect catalogue=58: leaves out the diagonal itself
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def attention(q, k, v, o, T, scale, BLOCK: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = tl.program_id(1) * T * D
    d = tl.arange(0, D)
    a = tl.load(q + base + rows[:, None] * D + d[None, :], mask=rows[:, None] < T, other=0.0)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BLOCK, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        b = tl.load(k + base + columns[:, None] * D + d[None, :], mask=columns[:, None] < T, other=0.0)
        s = tl.dot(a, tl.trans(b), input_precision="ieee") * scale
        s = tl.where((columns[None, :] < rows[:, None]) & (columns[None, :] < T), s, float("-inf"))
        now = tl.maximum(best, tl.max(s, 1))
        p = tl.exp(s - now[:, None])
        shrink = tl.exp(best - now)
        total = total * shrink + tl.sum(p, 1)
        c = tl.load(v + base + columns[:, None] * D + d[None, :], mask=columns[:, None] < T, other=0.0)
        acc = acc * shrink[:, None] + tl.dot(p, c, input_precision="ieee")
        best = now
    tl.store(o + base + rows[:, None] * D + d[None, :], acc / total[:, None], mask=rows[:, None] < T)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        h, t, d = q.shape
        o = torch.empty_like(q)
        attention[(triton.cdiv(t, 32), h)](q, k, v, o, t, d**-0.5, BLOCK=32, D=d)
        return o
