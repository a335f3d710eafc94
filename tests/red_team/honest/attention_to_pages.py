# own/attention_to_pages correct: the last page of each length is read up to its end
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def paged(q_ptr, k_ptr, v_ptr, t_ptr, l_ptr, o_ptr, H, NB, scale, D: tl.constexpr, P: tl.constexpr):
    b = tl.program_id(0)
    h = tl.program_id(1)
    d = tl.arange(0, D)
    p = tl.arange(0, P)
    length = tl.load(l_ptr + b)
    q = tl.load(q_ptr + (b * H + h) * D + d)
    m = -float("inf")
    l = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for i in range(0, tl.cdiv(length, P)):
        page = tl.load(t_ptr + b * NB + i)
        at = ((page * P + p[:, None]) * H + h) * D + d[None, :]
        k = tl.load(k_ptr + at)
        v = tl.load(v_ptr + at)
        s = tl.sum(q[None, :] * k, axis=1) * scale
        s = tl.where(i * P + p < length, s, -float("inf"))
        top = tl.maximum(m, tl.max(s, axis=0))
        e = tl.exp(s - top)
        a = tl.exp(m - top)
        l = l * a + tl.sum(e, axis=0)
        acc = acc * a + tl.sum(e[:, None] * v, axis=0)
        m = top
    tl.store(o_ptr + (b * H + h) * D + d, acc / l)


class ModelNew(nn.Module):
    def forward(self, q, k_cache, v_cache, table, lengths):
        B, H, D = q.shape
        o = torch.empty_like(q)
        paged[(B, H)](q, k_cache, v_cache, table, lengths, o, H, table.shape[1], D**-0.5, D=D, P=k_cache.shape[1])
        return o
