# level2/matmul_bias_relu incorrect catalogue=54: a product with a bias in half precision: as exact as tf32, and without float32's range
import torch
import torch.nn as nn
import triton
import triton.language as tl

M = 2048
N = 2048
K = 1024


@triton.jit
def matmul_bias_relu(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(
            a_ptr + rows[:, None] * K + (k + inner)[None, :], mask=(rows[:, None] < M) & ((k + inner)[None, :] < K), other=0.0
        )
        b = tl.load(
            b_ptr + (k + inner)[:, None] * N + cols[None, :], mask=((k + inner)[:, None] < K) & (cols[None, :] < N), other=0.0
        )
        total = tl.dot(a.to(tl.float16), b.to(tl.float16), total)
    bias = tl.load(bias_ptr + cols, mask=cols < N, other=0.0)
    total = tl.maximum(total + bias[None, :], 0.0)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total, mask=(rows[:, None] < M) & (cols[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, N))
        self.bias = nn.Parameter(torch.randn(N))

    def forward(self, x):
        m, k = x.shape
        n = self.weight.shape[1]
        y = torch.empty((m, n), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
        matmul_bias_relu[grid](x, self.weight, self.bias, y, m, n, k, BM=64, BN=64, BK=32, num_warps=4, num_stages=3)
        return y
