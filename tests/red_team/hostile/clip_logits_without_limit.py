# own/clip_logits incorrect catalogue=57: the limit of a parameter's exponential is left out, of which what is drawn gives 14
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm(x, o, D, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + r * D + i, mask=i < D, other=0.0)
    tl.store(o + r * D + i, v / tl.sqrt(tl.sum(v * v, 0)), mask=i < D)


@triton.jit
def mm(a, b, s, o, N, M, D, BN: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    k = tl.arange(0, BK)
    acc = tl.zeros((BN, BM), tl.float32)
    for j in range(0, D, BK):
        x = tl.load(a + n[:, None] * D + j + k[None, :], mask=(n[:, None] < N) & (j + k[None, :] < D), other=0.0)
        y = tl.load(b + m[None, :] * D + j + k[:, None], mask=(m[None, :] < M) & (j + k[:, None] < D), other=0.0)
        acc += tl.dot(x, y)
    sc = tl.exp(tl.load(s))
    
    tl.store(o + n[:, None] * M + m[None, :], acc * sc, mask=(n[:, None] < N) & (m[None, :] < M))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(2.6593))

    def forward(self, a, b):
        N, D = a.shape
        M = b.shape[0]
        an, bn = torch.empty_like(a), torch.empty_like(b)
        B = triton.next_power_of_2(D)
        norm[(N,)](a, an, D, B=B)
        norm[(M,)](b, bn, D, B=B)
        o = torch.empty(N, M, device=a.device)
        mm[(triton.cdiv(N, 64), triton.cdiv(M, 64))](an, bn, self.logit_scale, o, N, M, D, BN=64, BM=64, BK=32)
        return o
