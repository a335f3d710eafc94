# level2/exp_row_sum_bias correct: a reduction and what follows it in one kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 8192


@triton.jit
def lse(x_ptr, b_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=-float("inf"))
    x += tl.load(b_ptr + i, mask=i < cols, other=0.0)
    top = tl.max(x, axis=0)
    y = top + tl.log(tl.sum(tl.exp(x - top), axis=0))
    tl.store(y_ptr + row, y * y)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.empty(x.shape[:1], device=x.device, dtype=x.dtype)
        lse[(x.shape[0],)](x, self.bias, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return y
