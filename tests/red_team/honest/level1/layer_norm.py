# level1/layer_norm correct: one program per row; mean and variance in two passes over registers
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 4096


@triton.jit
def norm_row(x_ptr, w_ptr, b_ptr, y_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < cols
    x = tl.load(x_ptr + row * cols + c, mask=m, other=0.0)
    mean = tl.sum(x, axis=0) / cols
    d = tl.where(m, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(d * d, axis=0) / cols + eps)
    w = tl.load(w_ptr + c, mask=m)
    b = tl.load(b_ptr + c, mask=m)
    tl.store(y_ptr + row * cols + c, d * rstd * w + b, mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.empty_like(x)
        rows, cols = x.shape
        norm_row[(rows,)](x, self.weight, self.bias, y, cols, 1e-5, BLOCK=triton.next_power_of_2(cols))
        return y
