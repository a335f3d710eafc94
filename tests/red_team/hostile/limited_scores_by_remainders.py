# own/limited_scores incorrect catalogue=53: every fourth head of queries shares a head of keys, which is right where both have as many
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def tanh(x):
    e = tl.exp(-2.0 * tl.abs(x))
    t = (1.0 - e) / (1.0 + e)
    return tl.where(x < 0, -t, t)

@triton.jit
def attn(q, k, v, o, H, G, L, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    bh = tl.program_id(1)
    b = bh // H
    h = bh % H
    kv = (b * (H // G) + h % (H // G)) * L * D
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    qq = tl.load(q + bh * L * D + rm[:, None] * D + d[None, :], mask=rm[:, None] < L, other=0.0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    hi = tl.minimum((tl.program_id(0) + 1) * BM, L)
    for s in range(0, hi, BN):
        rn = s + tl.arange(0, BN)
        kk = tl.load(k + kv + rn[None, :] * D + d[:, None], mask=rn[None, :] < L, other=0.0)
        sc = tl.dot(qq, kk) * scale
        sc = 50.0 * tanh(sc / 50.0)
        sc = tl.where((rn[None, :] <= rm[:, None]) & (rn[None, :] < L), sc, float("-inf"))
        new = tl.maximum(m, tl.max(sc, 1))
        p = tl.exp(sc - new[:, None])
        alpha = tl.exp(m - new)
        l = l * alpha + tl.sum(p, 1)
        vv = tl.load(v + kv + rn[:, None] * D + d[None, :], mask=rn[:, None] < L, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p, vv)
        m = new
    tl.store(o + bh * L * D + rm[:, None] * D + d[None, :], acc / l[:, None], mask=rm[:, None] < L)

class ModelNew(nn.Module):
    def forward(self, q, k, v):
        B, H, L, D = q.shape
        o = torch.empty_like(q)
        attn[(triton.cdiv(L, 64), B * H)](q, k, v, o, H, H // k.shape[1], L, D ** -0.5, D=D, BM=64, BN=64)
        return o
