# own/rest_of_a_cast correct: the product of what bfloat16 leaves of an operand
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, w, y, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, N, BK):
        j = start + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * N + j[None, :], mask=(m[:, None] < N) & (j[None, :] < N), other=0.0)
        b = tl.load(w + j[:, None] * N + n[None, :], mask=(j[:, None] < N) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a - a.to(tl.bfloat16).to(tl.float32), b, input_precision="ieee")
    tl.store(y + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < N) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(N, N) * 0.1)

    def forward(self, x):
        n = x.shape[0]
        y = torch.empty_like(x)
        k[(triton.cdiv(n, 64), triton.cdiv(n, 64))](x, self.weight, y, n, BM=64, BN=64, BK=32)
        return y


N = 512
