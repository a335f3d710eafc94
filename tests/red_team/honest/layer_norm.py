# level1/layer_norm correct: parameters, mean and variance
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 4096

@triton.jit
def norm(x_ptr, w_ptr, b_ptr, y_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    keep = i < cols
    x = tl.load(x_ptr + row * cols + i, mask=keep, other=0.0)
    mean = tl.sum(x, axis=0) / cols
    d = tl.where(keep, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(d * d, axis=0) / cols + eps)
    y = d * rstd * tl.load(w_ptr + i, mask=keep) + tl.load(b_ptr + i, mask=keep)
    tl.store(y_ptr + row * cols + i, y, mask=keep)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.empty_like(x)
        rows, cols = x.shape
        norm[(rows,)](x, self.weight, self.bias, y, cols, 1e-5, BLOCK=triton.next_power_of_2(cols))
        return y
