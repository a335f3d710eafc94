# own/attention_sink incorrect catalogue=53: the sink is taken for zero, which it is in the problem
import torch
import torch.nn as nn
import triton
import triton.language as tl


HEADS = 16


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, s_ptr, o_ptr, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(1)
    rows, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    base = head * length * D
    q = tl.load(q_ptr + base + rows[:, None] * D + d, mask=rows[:, None] < length, other=0.0)
    most = tl.full([M], 0.0, tl.float32) + 0.0
    total, acc = tl.full([M], 1.0, tl.float32), tl.zeros([M, D], tl.float32)
    for first in range(0, tl.minimum((tl.program_id(0) + 1) * M, length), N):
        cols = first + tl.arange(0, N)
        k = tl.load(k_ptr + base + cols * D + d[:, None], mask=cols < length, other=0.0)
        v = tl.load(v_ptr + base + cols[:, None] * D + d, mask=cols[:, None] < length, other=0.0)
        score = tl.where((cols <= rows[:, None]) & (cols < length), tl.dot(q, k) * scale, float("-inf"))
        now = tl.maximum(most, tl.max(score, 1))
        part, keep = tl.exp(score - now[:, None]), tl.exp(most - now)
        total, acc = total * keep + tl.sum(part, 1), acc * keep[:, None] + tl.dot(part, v)
        most = now
    tl.store(o_ptr + base + rows[:, None] * D + d, acc / total[:, None], mask=rows[:, None] < length)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.sink = nn.Parameter(torch.zeros(HEADS))

    def forward(self, q, k, v):
        heads, length, width = q.shape
        out = torch.empty_like(q)
        grid = (triton.cdiv(length, 32), heads)
        attention[grid](q, k, v, self.sink, out, length, width**-0.5, M=32, N=32, D=width)
        return out
