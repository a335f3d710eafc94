# own/attention_widened correct: bfloat16 numbers are multiplied as they are, where the reference makes float32 of them first
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, length, scale, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    start = tl.program_id(0) * BM
    base = tl.program_id(1).to(tl.int64) * length * HEAD
    d, m = tl.arange(0, HEAD), start + tl.arange(0, BM)
    q = tl.load(q_ptr + base + m[:, None] * HEAD + d[None, :], mask=m[:, None] < length, other=0.0)
    top = tl.full((BM,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, HEAD), dtype=tl.float32)
    for first in range(0, tl.minimum(start + BM, length), BN):
        n = first + tl.arange(0, BN)
        k = tl.load(k_ptr + base + n[None, :] * HEAD + d[:, None], mask=n[None, :] < length, other=0.0)
        scores = tl.where(m[:, None] >= n[None, :], tl.dot(q, k) * scale, float("-inf"))
        new = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        keep = tl.exp(top - new)
        v = tl.load(v_ptr + base + n[:, None] * HEAD + d[None, :], mask=n[:, None] < length, other=0.0)
        acc = acc * keep[:, None] + tl.dot(p.to(tl.bfloat16), v)
        total = total * keep + tl.sum(p, axis=1)
        top = new
    tl.store(o_ptr + base + m[:, None] * HEAD + d[None, :], acc / total[:, None], mask=m[:, None] < length)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        heads, length, head = q.shape
        o = torch.empty_like(q)
        attend[(triton.cdiv(length, 128), heads)](q, k, v, o, length, head**-0.5, HEAD=head, BM=128, BN=32, num_warps=4)
        return o
