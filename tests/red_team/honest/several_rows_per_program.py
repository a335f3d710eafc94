# level1/log_softmax correct: a block of rows and columns per program
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def log_softmax(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    m = (r < rows) & (c < cols)
    x = tl.load(x_ptr + r * cols + c, mask=m, other=-float("inf"))
    x = x - tl.max(tl.where(r < rows, x, 0.0), axis=1)[:, None]
    total = tl.sum(tl.where(m, tl.exp(x), 0.0), axis=1)
    tl.store(y_ptr + r * cols + c, x - tl.log(tl.maximum(total, 1e-30))[:, None], mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        log_softmax[(triton.cdiv(rows, 2),)](x, y, rows, cols, ROWS=2, BLOCK=triton.next_power_of_2(cols), num_warps=16)
        return y
