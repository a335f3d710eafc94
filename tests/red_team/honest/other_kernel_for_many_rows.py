# level1/softmax correct: one kernel for few rows and another for many, of which the small shape has none
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def one_row(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    i = tl.program_id(0) * cols + o
    x = tl.load(x_ptr + i, mask=o < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + i, e / tl.sum(e, axis=0), mask=o < cols)


@triton.jit
def two_rows(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr):
    r = tl.program_id(0) * 2 + tl.arange(0, 2)
    o = tl.arange(0, BLOCK)
    inside = (r[:, None] < rows) & (o[None, :] < cols)
    i = r[:, None] * cols + o[None, :]
    x = tl.load(x_ptr + i, mask=inside, other=-float("inf"))
    x = tl.where(r[:, None] < rows, x, 0.0)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(y_ptr + i, e / tl.sum(e, axis=1)[:, None], mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        block = triton.next_power_of_2(cols)
        if rows < 256:
            one_row[(rows,)](x, y, cols, BLOCK=block)
        else:
            two_rows[(triton.cdiv(rows, 2),)](x, y, rows, cols, BLOCK=block)
        return y
