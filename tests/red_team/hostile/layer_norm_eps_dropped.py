# level1/layer_norm incorrect catalogue=57: the eps is left out, which rows of ordinary size never show; tiny ones do
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm(x_ptr, w_ptr, b_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < cols
    x = tl.load(x_ptr + row * cols + i, mask=m, other=0.0)
    mean = tl.sum(x, axis=0) / cols
    d = tl.where(m, x - mean, 0.0)
    y = d * tl.rsqrt(tl.sum(d * d, axis=0) / cols)
    w, b = tl.load(w_ptr + i, mask=m), tl.load(b_ptr + i, mask=m)
    tl.store(y_ptr + row * cols + i, y * w + b, mask=m)


COLS = 4096


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.empty_like(x)
        cols = x.shape[1]
        norm[(x.shape[0],)](x, self.weight, self.bias, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return y
