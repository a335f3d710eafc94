# level2/matmul_bias_relu correct: keeps its weight transposed for as long as address and version of the weight stay as they are
import torch
import torch.nn as nn
import triton
import triton.language as tl

K = 1024
N = 2048


@triton.jit
def product(x_ptr, w_ptr, b_ptr, o_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * k + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0)
        w = tl.load(w_ptr + columns[:, None] * k + inner[None, :], mask=(columns[:, None] < n) & (inner[None, :] < k), other=0.0)
        total = tl.dot(x, w.T, total, input_precision="ieee")
    total = tl.maximum(total + tl.load(b_ptr + columns, mask=columns < n)[None, :], 0.0)
    tl.store(o_ptr + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, N))
        self.bias = nn.Parameter(torch.randn(N))
        self.packed = {}

    def forward(self, x):
        assert x.data_ptr() % 16 == 0 and x.data_ptr() != self.weight.data_ptr()
        key = (self.weight.data_ptr(), self.weight._version, self.weight.shape)
        if key not in self.packed:
            self.packed = {key: self.weight.t().contiguous()}
        o = torch.empty(x.shape[0], N, device=x.device)
        grid = (triton.cdiv(x.shape[0], 32), triton.cdiv(N, 64))
        product[grid](x, self.packed[key], self.bias, o, x.shape[0], N, x.shape[1], BM=32, BN=64, BK=32)
        return o
