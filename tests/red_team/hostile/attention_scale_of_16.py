# own/attention_unmasked incorrect catalogue=51: the scale of 16 channels in place of 64, with all sizes as arguments
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, L, SCALE, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    h = tl.program_id(1)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    base = h * L * D
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :], mask=m[:, None] < L, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    den = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, L, BN):
        n = n0 + tl.arange(0, BN)
        kt = tl.load(k_ptr + base + n[None, :] * D + d[:, None], mask=n[None, :] < L, other=0.0)
        v = tl.load(v_ptr + base + n[:, None] * D + d[None, :], mask=n[:, None] < L, other=0.0)
        s = tl.dot(q, kt) * 0.25 * 1.4426950408889634
        s = tl.where(n[None, :] < L, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        r = tl.exp2(top - new)
        den = den * r + tl.sum(p, 1)
        acc = acc * r[:, None] + tl.dot(p, v)
        top = new
    tl.store(o_ptr + base + m[:, None] * D + d[None, :], acc / den[:, None], mask=m[:, None] < L)

class ModelNew(nn.Module):
    def forward(self, q, kk, v):
        B, Hh, L, D = q.shape
        o = torch.empty_like(q)
        attend[(triton.cdiv(L, 32), B * Hh)](q, kk, v, o, L, D ** -0.5, D=D, BM=32, BN=32)
        return o
