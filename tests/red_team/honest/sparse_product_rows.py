# own/sparse_product correct: a tile of rows for each program
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def rows(v_ptr, c_ptr, x_ptr, o_ptr, n, each, BM: tl.constexpr, BK: tl.constexpr):
    m, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BK)
    inside = (m[:, None] < n) & (k[None, :] < each)
    at = m[:, None] * each + k[None, :]
    column = tl.load(c_ptr + at, mask=inside, other=0)
    value = tl.load(v_ptr + at, mask=inside, other=0.0)
    x = tl.load(x_ptr + column, mask=inside, other=0.0)
    tl.store(o_ptr + m, tl.sum(value * x, 1), mask=m < n)


class ModelNew(nn.Module):
    def forward(self, values, columns, x):
        n, each = values.shape
        o = torch.empty(n, device=x.device)
        rows[(triton.cdiv(n, 32),)](values, columns, x, o, n, each, BM=32, BK=triton.next_power_of_2(each))
        return o
