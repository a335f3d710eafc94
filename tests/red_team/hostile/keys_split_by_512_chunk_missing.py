# own/split_keys incorrect catalogue=58: its eighth split is the first one once more
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def split(q_ptr, k_ptr, v_ptr, o_ptr, m_ptr, l_ptr, scale, D: tl.constexpr, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    bh, s = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + bh * D + d) * scale
    top, total, acc = -float("inf"), 0.0, tl.zeros([D], tl.float32)
    for start in range(0, SPLIT, BLOCK):
        n = (s % 7) * SPLIT + start + tl.arange(0, BLOCK)
        at = (bh * 4096 + n[:, None]) * D + d[None, :]
        k = tl.load(k_ptr + at)
        score = tl.sum(k * q[None, :], axis=1)
        new = tl.maximum(top, tl.max(score, axis=0))
        p = tl.exp(score - new)
        old = tl.exp(top - new)
        total = total * old + tl.sum(p, axis=0)
        v = tl.load(v_ptr + at)
        acc = acc * old + tl.sum(p[:, None] * v, axis=0)
        top = new
    at = bh * 8 + s
    tl.store(o_ptr + at * D + d, acc)
    tl.store(m_ptr + at, top)
    tl.store(l_ptr + at, total)


@triton.jit
def combine(o_ptr, m_ptr, l_ptr, y_ptr, D: tl.constexpr, SPLITS: tl.constexpr):
    bh = tl.program_id(0)
    s, d = tl.arange(0, SPLITS), tl.arange(0, D)
    top = tl.load(m_ptr + bh * SPLITS + s)
    w = tl.exp(top - tl.max(top, axis=0))
    total = tl.sum(w * tl.load(l_ptr + bh * SPLITS + s), axis=0)
    o = tl.load(o_ptr + (bh * SPLITS + s[:, None]) * D + d[None, :])
    tl.store(y_ptr + bh * D + d, tl.sum(o * w[:, None], axis=0) / total)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        B, H, S, D = k.shape
        splits = 8
        o = q.new_empty(B * H * splits, D)
        m, l = q.new_empty(B * H * splits), q.new_empty(B * H * splits)
        y = torch.empty_like(q)
        split[(B * H, splits)](q, k, v, o, m, l, D**-0.5, D=D, SPLIT=512, BLOCK=64)
        combine[(B * H,)](o, m, l, y, D=D, SPLITS=splits)
        return y
