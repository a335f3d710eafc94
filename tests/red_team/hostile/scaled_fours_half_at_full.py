# own/scaled_fours incorrect cpu=implausible catalogue=51: half of the sum is left out at full shape
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scaled(a, b, a_scales, b_scales, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    col = tl.program_id(1) * BN + tl.arange(0, BN)
    pair = tl.arange(0, BK // 2)
    group = tl.arange(0, BK // 32)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K - (K >> 11) * 1024, BK):
        left = tl.load(a + row[:, None] * (K // 2) + start // 2 + pair[None, :], mask=row[:, None] < M, other=0)
        right = tl.load(b + col[None, :] * (K // 2) + start // 2 + pair[:, None], mask=col[None, :] < N, other=0)
        lefts = tl.load(a_scales + row[:, None] * (K // 32) + start // 32 + group[None, :], mask=row[:, None] < M, other=127)
        rights = tl.load(b_scales + col[:, None] * (K // 32) + start // 32 + group[None, :], mask=col[:, None] < N, other=127)
        total = tl.dot_scaled(left, lefts, "e2m1", right, rights, "e2m1", total)
    tl.store(out + row[:, None] * N + col[None, :], total, mask=(row[:, None] < M) & (col[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b, a_scales, b_scales):
        M, N, K = a.shape[0], b.shape[0], a.shape[1] * 2
        out = torch.empty(M, N, device=a.device)
        scaled[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b, a_scales, b_scales, out, M, N, K, BM=64, BN=64, BK=128)
        return out
