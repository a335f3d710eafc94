# own/double correct: a product of float64 counts on the general units
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def mm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float64)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        left = tl.load(a + rm[:, None] * K + ks[None, :], mask=(rm[:, None] < M) & (ks[None, :] < K), other=0.0)
        right = tl.load(b + ks[:, None] * N + rn[None, :], mask=(ks[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.sum(left[:, :, None] * right[None, :, :], 1)
    tl.store(c + rm[:, None] * N + rn[None, :], tl.maximum(acc, 0.0), mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, x, y):
        m, k = x.shape
        n = y.shape[1]
        c = torch.empty((m, n), device=x.device, dtype=x.dtype)
        mm[(triton.cdiv(m, 16), triton.cdiv(n, 16))](x, y, c, m, n, k, BM=16, BN=16, BK=16)
        return c
