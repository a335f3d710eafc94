# level1/matmul correct cpu=untraceable catalogue=49: a trip count that a helper returns where memory says so; both of its values are computed, and what it gives is unknown
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def turns(given, K):
    if given > 0:
        return K
    return K * 0


@triton.jit
def mm(a, b, c, M, N, K, kp, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    end = turns(tl.load(kp), K)
    for k in range(0, tl.cdiv(end, BK)):
        ks = k * BK + tl.arange(0, BK)
        x = tl.load(a + rm[:, None] * K + ks[None, :], mask=(rm[:, None] < M) & (ks[None, :] < K), other=0.0)
        y = tl.load(b + ks[:, None] * N + rn[None, :], mask=(ks[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(x, y, input_precision="ieee")
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        m, k = a.shape
        n = b.shape[1]
        c = torch.empty((m, n), device=a.device)
        kp = torch.full((1,), k, device=a.device, dtype=torch.int32)
        w = a + 1.0
        mm[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, b, c, m, n, k, kp, BM=64, BN=64, BK=64)
        return c
