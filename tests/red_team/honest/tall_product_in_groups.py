# own/tall_product correct: groups of rows whose width is as large at the small shape, since there are as many blocks of columns
import torch
import torch.nn as nn
import triton
import triton.language as tl

N, K = 64, 2048


@triton.jit
def product(x_ptr, w_ptr, y_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    width = GROUP * tl.cdiv(n, BN)
    first = (pid // width) * GROUP
    size = tl.minimum(tl.cdiv(m, BM) - first, GROUP)
    pm = first + pid % width % size
    pn = pid % width // size
    rm, rn = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        rk = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * k + rk[None, :], mask=(rm[:, None] < m) & (rk[None, :] < k), other=0.0)
        w = tl.load(w_ptr + rn[None, :] * k + rk[:, None], mask=(rk[:, None] < k) & (rn[None, :] < n), other=0.0)
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + rm[:, None] * n + rn[None, :], acc, mask=(rm[:, None] < m) & (rn[None, :] < n))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(N, K))

    def forward(self, x):
        (m, k), n = x.shape, self.weight.shape[0]
        y = torch.empty(m, n, device=x.device)
        product[(triton.cdiv(m, 128) * triton.cdiv(n, 32),)](x, self.weight, y, m, n, k, BM=128, BN=32, BK=32, GROUP=16)
        return y
