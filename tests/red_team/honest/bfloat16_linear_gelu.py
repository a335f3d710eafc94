# own/bf16_matmul correct: operands of bfloat16, float32 sums, a grouped order of programs
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


K = 1024
N = 1024


@triton.jit
def linear(x, w, b, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    width = 4 * tl.cdiv(N, BN)
    group = pid // width
    size = tl.minimum(tl.cdiv(M, BM) - group * 4, 4)
    rm = (group * 4 + pid % width % size) * BM + tl.arange(0, BM)
    rn = (pid % width // size) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        ks = k * BK + tl.arange(0, BK)
        a = tl.load(x + rm[:, None] * K + ks[None, :], mask=(rm[:, None] < M) & (ks[None, :] < K), other=0.0)
        c = tl.load(w + rn[None, :] * K + ks[:, None], mask=(rn[None, :] < N) & (ks[:, None] < K), other=0.0)
        acc = tl.dot(a, c, acc)
    acc += tl.load(b + rn, mask=rn < N, other=0.0)[None, :].to(tl.float32)
    acc = 0.5 * acc * (1.0 + tl.math.erf(acc * 0.7071067811865476))
    tl.store(y + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16), mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(K, N, dtype=torch.bfloat16)

    def forward(self, x):
        m, k = x.shape
        n = self.fc.weight.shape[0]
        y = torch.empty((m, n), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(m, 32) * triton.cdiv(n, 32),)
        linear[grid](x, self.fc.weight, self.fc.bias, y, m, n, k, BM=32, BN=32, BK=32)
        return y
