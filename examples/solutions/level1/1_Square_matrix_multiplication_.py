import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, N, BK):
        k = first + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * N + k[None, :], mask=(rows < N)[:, None] & (k < N)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :], mask=(k < N)[:, None] & (cols < N)[None, :], other=0.0)
        total += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total, mask=(rows < N)[:, None] & (cols < N)[None, :])


class ModelNew(nn.Module):
    """Correct and slower than the vendor's library."""

    def forward(self, a, b):
        N = a.shape[0]
        c = torch.empty_like(a)
        matmul_kernel[(triton.cdiv(N, 64), triton.cdiv(N, 64))](a, b, c, N, BM=64, BN=64, BK=32)
        return c
