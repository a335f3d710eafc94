# level3/linear_attention correct: the small matrix of keys and values by one kernel, its product with the queries by another
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def feature(x):
    return tl.where(x > 0, x + 1.0, tl.exp(x))


@triton.jit
def summarise(k_ptr, v_ptr, kv_ptr, sum_ptr, length, head, D: tl.constexpr, BL: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * length * head
    d = tl.arange(0, D)
    acc = tl.zeros((D, D), dtype=tl.float32)
    total = tl.zeros((D,), dtype=tl.float32)
    for s in range(0, length, BL):
        n = s + tl.arange(0, BL)
        inside = (n[:, None] < length) & (d[None, :] < head)
        k = tl.load(k_ptr + base + n[:, None] * head + d[None, :], mask=inside, other=0.0)
        k = tl.where(inside, feature(k), 0.0)
        v = tl.load(v_ptr + base + n[:, None] * head + d[None, :], mask=inside, other=0.0)
        acc = tl.dot(tl.trans(k), v, acc, input_precision="ieee")
        total += tl.sum(k, axis=0)
    tl.store(kv_ptr + tl.program_id(0) * D * D + d[:, None] * D + d[None, :], acc)
    tl.store(sum_ptr + tl.program_id(0) * D + d, total)


@triton.jit
def apply(q_ptr, kv_ptr, sum_ptr, o_ptr, length, head, D: tl.constexpr, BL: tl.constexpr):
    batch = tl.program_id(1)
    base = batch.to(tl.int64) * length * head
    d, n = tl.arange(0, D), tl.program_id(0) * BL + tl.arange(0, BL)
    inside = (n[:, None] < length) & (d[None, :] < head)
    q = tl.load(q_ptr + base + n[:, None] * head + d[None, :], mask=inside, other=0.0)
    q = tl.where(inside, feature(q), 0.0)
    kv = tl.load(kv_ptr + batch * D * D + d[:, None] * D + d[None, :])
    total = tl.sum(q * tl.load(sum_ptr + batch * D + d)[None, :], axis=1)
    o = tl.dot(q, kv, input_precision="ieee") / tl.where(n < length, total, 1.0)[:, None]
    tl.store(o_ptr + base + n[:, None] * head + d[None, :], o, mask=inside)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        batch, length, head = q.shape
        d = max(16, triton.next_power_of_2(head))
        kv = torch.empty((batch, d, d), device=q.device)
        total = torch.empty((batch, d), device=q.device)
        o = torch.empty_like(q)
        summarise[(batch,)](k, v, kv, total, length, head, D=d, BL=32)
        apply[(triton.cdiv(length, 32), batch)](q, kv, total, o, length, head, D=d, BL=32)
        return o
