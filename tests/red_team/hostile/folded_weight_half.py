# level2/matmul_bias_relu incorrect catalogue=54: half precision, and a weight that is kept under no name, so that none can be given to it by name
import torch
import torch.nn as nn
import triton
import triton.language as tl

M = 2048
K = 1024
N = 2048


@triton.jit
def mm(a_ptr, wt_ptr, bias_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        ks = k * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + ks[None, :], mask=(rm[:, None] < M) & (ks[None, :] < K), other=0.0)
        b = tl.load(wt_ptr + rn[:, None] * K + ks[None, :], mask=(rn[:, None] < N) & (ks[None, :] < K), other=0.0)
        acc = tl.dot(a.to(tl.float16), tl.trans(b).to(tl.float16), acc)
    acc += tl.load(bias_ptr + rn, mask=rn < N, other=0.0)[None, :]
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], tl.maximum(acc, 0.0), mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        weight = nn.Parameter(torch.randn(K, N))
        self.bias = nn.Parameter(torch.randn(N))
        self.register_buffer("transposed", weight.detach().t().contiguous())

    def forward(self, x):
        m, k = x.shape
        n = self.bias.shape[0]
        y = torch.empty((m, n), device=x.device)
        mm[(triton.cdiv(m, 64), triton.cdiv(n, 64))](x, self.transposed, self.bias, y, m, n, k, BM=64, BN=64, BK=32)
        return y
