# own/cosine_loss correct: each program adds its rows' mean by an atomic
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def loss(a_ptr, b_ptr, t_ptr, o_ptr, rows, cols, margin, BM: tl.constexpr, BLOCK: tl.constexpr):
    m, at = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BLOCK)
    inside = (m[:, None] < rows) & (at[None, :] < cols)
    a = tl.load(a_ptr + m[:, None] * cols + at[None, :], mask=inside, other=0.0)
    b = tl.load(b_ptr + m[:, None] * cols + at[None, :], mask=inside, other=0.0)
    dot, aa, bb = tl.sum(a * b, 1), tl.sum(a * a, 1) + 1e-12, tl.sum(b * b, 1) + 1e-12
    cos = dot / tl.sqrt(aa * bb)
    t = tl.load(t_ptr + m, mask=m < rows, other=1)
    each = tl.where(t == 1, 1 - cos, tl.maximum(cos - margin, 0.0))
    tl.atomic_add(o_ptr, tl.sum(tl.where(m < rows, each, 0.0), 0) / rows)


class ModelNew(nn.Module):
    def forward(self, a, b, target):
        o = torch.zeros((), device=a.device)
        rows, cols = a.shape
        loss[(triton.cdiv(rows, 8),)](a, b, target, o, rows, cols, 0.05, BM=8, BLOCK=triton.next_power_of_2(cols))
        return o
