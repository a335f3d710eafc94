# own/causal_attention correct speedup<1.3: half of the scores are behind the mask, for torch's operator, too
import torch
import torch.nn as nn
import triton
import triton.language as tl


B, H, L, D = 4, 16, 2048, 64


@triton.jit
def flash(q_ptr, k_ptr, v_ptr, o_ptr, L, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    start = tl.program_id(0)
    bh = tl.program_id(1)
    rm = start * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    base = bh * L * D
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :], mask=rm[:, None] < L, other=0.0)
    m = tl.full((BM,), -float("inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, tl.minimum(L, (start + 1) * BM), BN):
        rn = n0 + tl.arange(0, BN)
        kk = tl.load(k_ptr + base + rn[None, :] * D + rd[:, None], mask=rn[None, :] < L, other=0.0)
        s = tl.dot(q, kk) * scale
        s = tl.where((rm[:, None] >= rn[None, :]) & (rn[None, :] < L), s, -float("inf"))
        mn = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - mn[:, None])
        a = tl.exp2(m - mn)
        l = l * a + tl.sum(p, 1)
        v = tl.load(v_ptr + base + rn[:, None] * D + rd[None, :], mask=rn[:, None] < L, other=0.0)
        acc = tl.dot(p.to(tl.float16), v, acc * a[:, None])
        m = mn
    tl.store(o_ptr + base + rm[:, None] * D + rd[None, :], (acc / l[:, None]).to(tl.float16), mask=rm[:, None] < L)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        b, h, l, d = q.shape
        o = torch.empty_like(q)
        flash[(triton.cdiv(l, 64), b * h)](q, k, v, o, l, d ** -0.5 * 1.44269504, D=d, BM=64, BN=32)
        return o
