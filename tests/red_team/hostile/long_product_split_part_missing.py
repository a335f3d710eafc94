# own/long_product incorrect cpu=inconsistent|incorrect catalogue=6: where its inner extent is long, one of the parts is not added
import torch
import torch.nn as nn
import triton
import triton.language as tl

SPLIT = 16


@triton.jit
def multiply(x, y, out, M, N, K, PARTS: tl.constexpr, B: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(tl.program_id(2) * BK, K, PARTS * BK):
        k = start + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(y + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
    place = out + tl.program_id(2) * M * N + m[:, None] * N + n[None, :]
    tl.store(place, acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def add(parts, out, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(PARTS - 1):
        total += tl.load(parts + part * n + i, mask=i < n, other=0.0)
    tl.store(out + i, total, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        (M, K), N = x.shape, y.shape[1]
        out = torch.empty(M, N, device=x.device)
        grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
        if K < 64 * max(M, N):
            multiply[(*grid, 1)](x, y, out, M, N, K, PARTS=1, B=64, BK=128)
            return out
        parts = torch.empty(SPLIT, M, N, device=x.device)
        multiply[(*grid, SPLIT)](x, y, parts, M, N, K, PARTS=SPLIT, B=64, BK=128)
        add[(triton.cdiv(M * N, 1024),)](parts, out, M * N, PARTS=SPLIT, BLOCK=1024)
        return out
