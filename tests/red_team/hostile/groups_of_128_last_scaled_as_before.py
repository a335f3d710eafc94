# own/groups_scaled incorrect: as honest/groups_of_128_by_number, and its last group has the scales of the one before
import torch
import torch.nn as nn
import triton
import triton.language as tl

GROUP = 128


@triton.jit
def product(x, w, s, z, y, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, cols = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows[:, None] < M) & (cols < N)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        at = k + tl.arange(0, BK)
        left = tl.load(x + rows[:, None] * K + at, mask=(rows[:, None] < M) & (at < K), other=0.0)
        bits = tl.load(w + at[:, None] // 8 * N + cols, mask=(at[:, None] < K) & (cols < N), other=0)
        right = ((bits >> (at[:, None] % 8)) & 1).to(tl.float32)
        scale = tl.load(s + tl.minimum(k // GROUP, K // GROUP - 2) * N + cols, mask=cols < N, other=0.0)
        zero = tl.load(z + k // GROUP * N + cols, mask=cols < N, other=0.0)
        total += tl.dot(left, right - zero[None, :], input_precision="ieee") * scale[None, :]
    tl.store(y + rows[:, None] * N + cols, total, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, w, scales, zeros):
        (m, k), n = x.shape, w.shape[1]
        y = torch.empty(m, n, device=x.device)
        product[(triton.cdiv(m, 16), triton.cdiv(n, 64))](x, w, scales, zeros, y, m, n, k, GROUP=GROUP, BM=16, BN=64, BK=32)
        return y
