# own/product_loss incorrect catalogue=53: operands in bfloat16, whose roundings a mean hides
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, w, t, o, N, K, M, BN: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    acc = tl.zeros((BN, BM), tl.float32)
    for s in range(0, K, BK):
        d = s + tl.arange(0, BK)
        a = tl.load(x + n[:, None] * K + d[None, :], mask=(n[:, None] < N) & (d[None, :] < K), other=0.0)
        b = tl.load(w + d[:, None] * M + m[None, :], mask=(d[:, None] < K) & (m[None, :] < M), other=0.0)
        acc += tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16))
    inside = (n[:, None] < N) & (m[None, :] < M)
    e = acc - tl.load(t + n[:, None] * M + m[None, :], mask=inside, other=0.0)
    e = tl.where(inside, e * e, 0.0)
    tl.atomic_add(o, tl.sum(tl.sum(e, 1), 0) / (N * M))


class ModelNew(nn.Module):
    def __init__(self, K, M):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, M) / K**0.5)

    def forward(self, x, t):
        o = torch.zeros((), device=x.device)
        N, K = x.shape
        M = self.weight.shape[1]
        k[(triton.cdiv(N, 64), triton.cdiv(M, 64))](x, self.weight, t, o, N, K, M, BN=64, BM=64, BK=32)
        return o
