# own/product_of_long_rows correct catalogue=51: the host limits how much of a sum is one part, which is always several blocks
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def part_mm(a, b, p, M, N, K, per, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    s = tl.program_id(2)
    acc = tl.zeros([BM, BN], tl.float32)
    for k0 in range(s * per, tl.minimum(K, (s + 1) * per), BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    tl.store(p + (s * M + m[:, None]) * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def add(p, y, MN, S, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.zeros([B], tl.float32)
    for s in range(S):
        acc += tl.load(p + s * MN + at, mask=at < MN, other=0.0)
    tl.store(y + at, acc, mask=at < MN)


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[1]
        bm, bn, bk = min(64, triton.next_power_of_2(M)), min(64, triton.next_power_of_2(N)), min(128, triton.next_power_of_2(K))
        per = min(1024, triton.next_power_of_2(K))
        S = triton.cdiv(K, per)
        p = torch.empty(S, M, N, device=a.device)
        y = torch.empty(M, N, device=a.device)
        part_mm[(triton.cdiv(M, bm), triton.cdiv(N, bn), S)](a, b, p, M, N, K, per, BM=bm, BN=bn, BK=bk)
        add[(triton.cdiv(M * N, 256),)](p, y, M * N, S, B=256)
        return y
