# level1/layer_norm correct: Welford's mean and variance in one pass, by a combine function of its own
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 4096


@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    share = tl.where(n > 0, n_b / tl.maximum(n, 1.0), 0.0)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def norm_row(x_ptr, w_ptr, b_ptr, y_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < cols
    x = tl.load(x_ptr + row * cols + c, mask=m, other=0.0)
    mean, m2, n = tl.reduce((x, tl.zeros_like(x), m.to(tl.float32)), 0, welford)
    w = tl.load(w_ptr + c, mask=m)
    b = tl.load(b_ptr + c, mask=m)
    tl.store(y_ptr + row * cols + c, (x - mean) / tl.sqrt(m2 / n + eps) * w + b, mask=m)


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
