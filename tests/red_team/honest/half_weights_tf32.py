# own/half_weights correct: tf32, as the precision allows it, beside a reference that casts
import torch
import torch.nn as nn
import triton
import triton.language as tl

K = 512
N = 512


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        total += tl.dot(x, w.to(tl.float32))
    tl.store(c + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, N).half(), requires_grad=False)

    def forward(self, x):
        M, K = x.shape
        N = self.weight.shape[1]
        y = torch.empty(M, N, device=x.device)
        product[(triton.cdiv(M, 64), triton.cdiv(N, 64))](x, self.weight, y, M, N, K, BM=64, BN=64, BK=32)
        return y
