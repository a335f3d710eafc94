# level1/matmul incorrect cpu=runtime_error catalogue=59: split along K, and each part overwrites the other's
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def partial(a, b, c, M, N, K, PART, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    first = tl.program_id(2) * PART
    k = first
    while k < tl.minimum(first + PART, K):
        ks = k + tl.arange(0, BK)
        left = tl.load(a + rm[:, None] * K + ks[None, :], mask=(rm[:, None] < M) & (ks[None, :] < K), other=0.0)
        right = tl.load(b + ks[:, None] * N + rn[None, :], mask=(ks[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
        k += BK
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        m, k = a.shape
        n = b.shape[1]
        c = torch.zeros((m, n), device=a.device)
        partial[(triton.cdiv(m, 32), triton.cdiv(n, 32), 2)](a, b, c, m, n, k, triton.cdiv(triton.cdiv(k, 2), 32) * 32, BM=32, BN=32, BK=32)
        return c
