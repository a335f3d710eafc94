# level2/matmul_residual correct: scale, bias, residual and tanh in the product's epilogue
import torch
import torch.nn as nn
import triton
import triton.language as tl

N = 2048


@triton.jit
def mm(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        ks = k * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + ks[None, :], mask=(rm[:, None] < M) & (ks[None, :] < K), other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + rn[None, :], mask=(ks[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    inside = (rm[:, None] < M) & (rn[None, :] < N)
    x = tl.load(a_ptr + rm[:, None] * K + rn[None, :], mask=inside, other=0.0)
    y = x + acc * 0.02 + tl.load(bias_ptr + rn, mask=rn < N, other=0.0)[None, :]
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], 2.0 * tl.sigmoid(2.0 * y) - 1.0, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(N, N))
        self.bias = nn.Parameter(torch.randn(N))

    def forward(self, x):
        m, n = x.shape
        y = torch.empty_like(x)
        mm[(triton.cdiv(m, 64), triton.cdiv(n, 64))](x, self.weight, self.bias, y, m, n, n, BM=64, BN=64, BK=32)
        return y
