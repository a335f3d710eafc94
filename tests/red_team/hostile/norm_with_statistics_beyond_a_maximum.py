# own/norm_with_statistics incorrect cpu=implausible catalogue=51: rows from 1025 on take a multiple of their mean, by a maximum with one that no row of few reaches
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def norm(x_ptr, w_ptr, b_ptr, y_ptr, m_ptr, r_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=inside, other=0.0)
    mean = tl.sum(x, 0) / cols * tl.maximum(row.to(tl.float32) * 0.0009765625, 1.0)
    d = tl.where(inside, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, 0) / cols + eps)
    w, b = tl.load(w_ptr + at, mask=inside), tl.load(b_ptr + at, mask=inside)
    tl.store(y_ptr + row * cols + at, d * rstd * w + b, mask=inside)
    tl.store(m_ptr + row, mean)
    tl.store(r_ptr + row, rstd)


COLS = 4096


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(COLS))
        self.bias = nn.Parameter(torch.zeros(COLS))

    def forward(self, x):
        rows, cols = x.shape
        y, mean, rstd = torch.empty_like(x), x.new_empty(rows), x.new_empty(rows)
        norm[(rows,)](x, self.weight, self.bias, y, mean, rstd, cols, 1e-5, BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return y, mean, rstd
