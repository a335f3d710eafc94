# own/distances_of_points incorrect catalogue=54: operands of the product rounded to bfloat16
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(a, b, o, N, M, D, BN: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr):
    r = tl.program_id(0) * BN + tl.arange(0, BN)
    c = tl.program_id(1) * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    x = tl.load(a + r[:, None] * D + d[None, :], mask=(r[:, None] < N) & (d[None, :] < D), other=0.0)
    y = tl.load(b + c[:, None] * D + d[None, :], mask=(c[:, None] < M) & (d[None, :] < D), other=0.0)
    p = tl.dot(x.to(tl.bfloat16), tl.trans(y).to(tl.bfloat16))
    s = tl.sum(x * x, 1)[:, None] + tl.sum(y * y, 1)[None, :] - 2 * p
    tl.store(o + r[:, None] * M + c[None, :], tl.sqrt(tl.maximum(s, 0.0)), mask=(r[:, None] < N) & (c[None, :] < M))


class ModelNew(nn.Module):
    def forward(self, a, b):
        N, D = a.shape
        M = b.shape[0]
        o = torch.empty(N, M, device=a.device)
        k[(triton.cdiv(N, 32), triton.cdiv(M, 32))](a, b, o, N, M, D, BN=32, BM=32, BD=max(16, triton.next_power_of_2(D)))
        return o
