# level1/matmul correct catalogue=59: partial products in a buffer that a second kernel adds up
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def partial(a_ptr, b_ptr, p_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(part, tl.cdiv(K, BK), SPLIT):
        ks = k * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + ks[None, :], mask=(rm[:, None] < M) & (ks[None, :] < K), other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + rn[None, :], mask=(ks[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    place = part.to(tl.int64) * M * N + rm[:, None] * N + rn[None, :]
    tl.store(p_ptr + place, acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def total(p_ptr, c_ptr, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(SPLIT):
        acc += tl.load(p_ptr + part * n + i, mask=i < n, other=0.0)
    tl.store(c_ptr + i, acc, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, a, b):
        m, k = a.shape
        n = b.shape[1]
        p = torch.empty((2, m, n), device=a.device, dtype=a.dtype)
        c = torch.empty((m, n), device=a.device, dtype=a.dtype)
        partial[(triton.cdiv(m, 64), triton.cdiv(n, 64), 2)](a, b, p, m, n, k, BM=64, BN=64, BK=32, SPLIT=2)
        total[(triton.cdiv(m * n, 1024),)](p, c, m * n, SPLIT=2, BLOCK=1024)
        return c
