# own/plain_attention incorrect catalogue=57: no maximum is taken off scores, which are cut off at 20 instead
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, L, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    base = tl.program_id(1).to(tl.int64) * L * D
    d = tl.arange(0, D)
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :], mask=m[:, None] < L, other=0.0)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for s in range(0, L, BN):
        n = s + tl.arange(0, BN)
        kk = tl.load(k_ptr + base + n[None, :] * D + d[:, None], mask=n[None, :] < L, other=0.0)
        v = tl.load(v_ptr + base + n[:, None] * D + d[None, :], mask=n[:, None] < L, other=0.0)
        x = tl.dot(q, kk) * scale
        p = tl.where(n[None, :] < L, tl.exp(tl.minimum(x, 20.0)), 0.0)
        total += tl.sum(p, 1)
        acc = tl.dot(p, v, acc)
    tl.store(o_ptr + base + m[:, None] * D + d[None, :], acc / total[:, None], mask=m[:, None] < L)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        B, H, L, D = q.shape
        o = torch.empty_like(q)
        attend[(triton.cdiv(L, 64), B * H)](q, k, v, o, L, D**-0.5, D=D, BM=64, BN=64)
        return o
