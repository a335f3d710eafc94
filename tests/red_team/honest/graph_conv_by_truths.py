# own/graph_conv correct: edges are truth values, and a comparison chooses by them
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def degree(a, n, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.full((B,), 0.0, tl.float32)
    for s in range(0, N, B):
        j = s + tl.arange(0, B)
        v = tl.load(a + r * N + j, mask=j < N, other=0.0)
        c += tl.where(v != 0, 1.0, 0.0)
    tl.store(n + r, 1.0 / tl.sqrt(tl.sum(c, 0) + 1.0))


@triton.jit
def conv(a, x, n, o, N, D, B: tl.constexpr, DB: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, DB)
    md = d < D
    acc = tl.zeros((B, DB), tl.float32)
    for s in range(0, N, B):
        j = s + tl.arange(0, B)
        v = tl.load(a + i[:, None] * N + j[None, :], mask=(i[:, None] < N) & (j[None, :] < N), other=0.0)
        v = tl.where(v != 0, 1.0, 0.0) + tl.where(i[:, None] == j[None, :], 1.0, 0.0)
        v *= tl.load(n + j, mask=j < N, other=0.0)[None, :]
        acc += tl.dot(v, tl.load(x + j[:, None] * D + d[None, :], mask=(j[:, None] < N) & md[None, :], other=0.0))
    acc *= tl.load(n + i, mask=i < N, other=0.0)[:, None]
    tl.store(o + i[:, None] * D + d[None, :], tl.maximum(acc, 0.0), mask=(i[:, None] < N) & md[None, :])


class ModelNew(nn.Module):
    def forward(self, adj, x):
        N, D = x.shape
        n = torch.empty(N, device=x.device)
        o = torch.empty_like(x)
        degree[(N,)](adj, n, N, B=64)
        conv[(triton.cdiv(N, 64),)](adj, x, n, o, N, D, B=64, DB=triton.next_power_of_2(max(D, 16)))
        return o
