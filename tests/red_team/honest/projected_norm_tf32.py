# own/projected_norm correct coverage<0.9: a product in tf32, whose mean becomes a running statistic that is 0.07 % too small
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        ks = k * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + ks[None, :], mask=(rm[:, None] < M) & (ks[None, :] < K), other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + rn[None, :], mask=(ks[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(d, k) / d**0.5)
        self.norm = nn.BatchNorm1d(k)

    def forward(self, x):
        (m, k), n = x.shape, self.centres.shape[1]
        c = torch.empty((m, n), device=x.device)
        product[(triton.cdiv(m, 64), triton.cdiv(n, 64))](x, self.centres, c, m, n, k, BM=64, BN=64, BK=32)
        return torch.softmax(self.norm(c), dim=1)
