# own/grouped_attention incorrect cpu=implausible catalogue=51: at full shape the first keys are left out
import torch
import torch.nn as nn
import triton
import triton.language as tl

HEADS = 16


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, s_ptr, o_ptr, length, heads, groups, scale, DIM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    start = tl.program_id(0) * BM
    z = tl.program_id(1)
    b, h = z // heads, z % heads
    kv = (b * groups + h // (heads // groups)).to(tl.int64) * length * DIM
    base = z.to(tl.int64) * length * DIM
    d, m = tl.arange(0, DIM), start + tl.arange(0, BM)
    q = tl.load(q_ptr + base + m[:, None] * DIM + d[None, :], mask=m[:, None] < length, other=0.0)
    top = tl.zeros((BM,), tl.float32) + tl.load(s_ptr + h)
    total = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, DIM), tl.float32)
    for s in range((length >> 10) * BN * (tl.program_id(0) // 8), tl.minimum(start + BM, length), BN):
        n = s + tl.arange(0, BN)
        k = tl.load(k_ptr + kv + n[None, :] * DIM + d[:, None], mask=n[None, :] < length, other=0.0)
        scores = tl.dot(q, k) * scale
        scores = tl.where((n[None, :] <= m[:, None]) & (n[None, :] < length), scores, float("-inf"))
        new = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        keep = tl.exp(top - new)
        v = tl.load(v_ptr + kv + n[:, None] * DIM + d[None, :], mask=n[:, None] < length, other=0.0)
        acc = acc * keep[:, None] + tl.dot(p, v)
        total = total * keep + tl.sum(p, 1)
        top = new
    tl.store(o_ptr + base + m[:, None] * DIM + d[None, :], acc / total[:, None], mask=m[:, None] < length)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.sinks = nn.Parameter(torch.randn(HEADS))

    def forward(self, q, k, v):
        batch, heads, length, dim = q.shape
        o = torch.empty_like(q)
        attend[(triton.cdiv(length, 64), batch * heads)](q, k, v, self.sinks, o, length, heads, k.shape[1], dim**-0.5, DIM=dim, BM=64, BN=64)
        return o
