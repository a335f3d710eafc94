# own/deep_half_product incorrect gpu=incorrect|correct catalogue=57: adds 8,192 products up in half precision, which loses less where sums are short
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float16)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0.0)
        w = tl.load(w_ptr + inner[:, None] * N + columns[None, :], mask=(inner[:, None] < K) & (columns[None, :] < N), other=0.0)
        total = tl.dot(x, w, total, out_dtype=tl.float16)
    tl.store(y_ptr + rows[:, None] * N + columns[None, :], total, mask=(rows[:, None] < M) & (columns[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, x, w):
        M, K = x.shape
        N = w.shape[1]
        y = torch.empty(M, N, dtype=x.dtype, device=x.device)
        kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](x, w, y, M, N, K, BM=64, BN=64, BK=64)
        return y
