# level2/matmul_row_max correct: the product never reaches memory; a second kernel takes the maximum of the tiles' maxima
import torch
import torch.nn as nn
import triton
import triton.language as tl

K = 1024
N = 2048


@triton.jit
def tile_max(a_ptr, b_ptr, p_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        ks = k * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + ks[None, :], mask=(rm[:, None] < M) & (ks[None, :] < K), other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + rn[None, :], mask=(ks[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    acc = tl.where(rn[None, :] < N, acc, -float("inf"))
    tl.store(p_ptr + tl.program_id(1) * M + rm, tl.max(acc, axis=1), mask=rm < M)


@triton.jit
def row_max(p_ptr, y_ptr, M, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    rm = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for part in range(PARTS):
        best = tl.maximum(best, tl.load(p_ptr + part * M + rm, mask=rm < M, other=-float("inf")))
    tl.store(y_ptr + rm, best, mask=rm < M)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, N))

    def forward(self, x):
        m, k = x.shape
        n = self.weight.shape[1]
        parts = triton.cdiv(n, 64)
        p = torch.empty((parts, m), device=x.device)
        y = torch.empty(m, device=x.device)
        tile_max[(triton.cdiv(m, 64), parts)](x, self.weight, p, m, n, k, BM=64, BN=64, BK=32)
        row_max[(triton.cdiv(m, 128),)](p, y, m, PARTS=parts, BLOCK=128)
        return y
