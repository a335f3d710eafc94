# own/near_keys correct catalogue=58: 128 keys before each query, in blocks of 32
import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, T, scale, WINDOW: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * T * D
    first = tl.program_id(0) * BM
    m = first + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head + m[:, None] * D + d[None, :], mask=m[:, None] < T, other=0.0)
    most = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    out = tl.zeros((BM, D), tl.float32)
    for begin in range(tl.maximum(0, (first - WINDOW + 1) // BN * BN), tl.minimum(T, first + BM), BN):
        n = begin + tl.arange(0, BN)
        k = tl.load(k_ptr + head + n[:, None] * D + d[None, :], mask=n[:, None] < T, other=0.0)
        v = tl.load(v_ptr + head + n[:, None] * D + d[None, :], mask=n[:, None] < T, other=0.0)
        near = (n[None, :] <= m[:, None]) & (n[None, :] < T) & (m[:, None] - n[None, :] < WINDOW)
        scores = tl.where(near, tl.dot(q, tl.trans(k), input_precision="ieee") * scale, -1e30)
        now = tl.maximum(most, tl.max(scores, 1))
        p = tl.where(near, tl.exp(scores - now[:, None]), 0.0)
        rest = tl.exp(most - now)
        total = total * rest + tl.sum(p, 1)
        out = out * rest[:, None] + tl.dot(p, v, input_precision="ieee")
        most = now
    tl.store(o_ptr + head + m[:, None] * D + d[None, :], out / total[:, None], mask=m[:, None] < T)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        B, H, T, D = q.shape
        o = torch.empty_like(q)
        attend[(triton.cdiv(T, 32), B * H)](q, k, v, o, T, 1 / math.sqrt(D), WINDOW=128, D=D, BM=32, BN=32)
        return o
