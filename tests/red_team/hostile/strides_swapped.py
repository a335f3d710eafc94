# own/rectangle_product incorrect catalogue=58: takes the rows of one factor for as long as those of the other, as at a square size
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, ROW, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        acc += tl.dot(tl.load(a_ptr + m[:, None] * ROW + k[None, :]), tl.load(b_ptr + k[:, None] * N + n[None, :]))
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty((M, N), device=a.device)
        kernel[(M // 64, N // 64)](a, b, c, M, N, K, N, BM=64, BN=64, BK=32)
        return c
