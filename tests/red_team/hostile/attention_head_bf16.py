# level3/attention_head incorrect catalogue=54: attention in bfloat16, which has 3 bits less than tf32
import torch
import torch.nn as nn
import triton
import triton.language as tl

DIM = 512
HEAD = 64


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, length, scale, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * length * HEAD
    d, m = tl.arange(0, HEAD), tl.program_id(0) * BM + tl.arange(0, BM)
    q = tl.load(q_ptr + base + m[:, None] * HEAD + d[None, :], mask=m[:, None] < length, other=0.0) * scale
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, HEAD), dtype=tl.float32)
    for s in range(0, length, BN):
        n = s + tl.arange(0, BN)
        k = tl.load(k_ptr + base + n[:, None] * HEAD + d[None, :], mask=n[:, None] < length, other=0.0)
        scores = tl.dot(q.to(tl.bfloat16), tl.trans(k).to(tl.bfloat16))
        scores = tl.where(n[None, :] < length, scores, -float("inf"))
        new = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        keep = tl.exp(top - new)
        v = tl.load(v_ptr + base + n[:, None] * HEAD + d[None, :], mask=n[:, None] < length, other=0.0)
        acc = tl.dot(p.to(tl.bfloat16), v.to(tl.bfloat16), acc * keep[:, None])
        total = total * keep + tl.sum(p, axis=1)
        top = new
    tl.store(o_ptr + base + m[:, None] * HEAD + d[None, :], acc / total[:, None], mask=m[:, None] < length)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(DIM, HEAD)
        self.key = nn.Linear(DIM, HEAD, bias=False)
        self.value = nn.Linear(DIM, HEAD)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (project(x).contiguous() for project in (self.query, self.key, self.value))
        o = torch.empty_like(q)
        head = q.shape[2]
        attend[(triton.cdiv(length, 32), batch)](q, k, v, o, length, head**-0.5, HEAD=head, BM=32, BN=32)
        return o
