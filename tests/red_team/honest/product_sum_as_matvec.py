# own/product_sum correct cpu=implausible: adds the weights' rows up first, and multiplies by their sum alone; without a GPU, less arithmetic looks like work left out
import torch
import torch.nn as nn
import triton
import triton.language as tl

WIDTH, HIDDEN = 8192, 8192


@triton.jit
def column_sums(w_ptr, s_ptr, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(rows):
        total += tl.load(w_ptr + row * columns + i, mask=i < columns, other=0.0)
    tl.store(s_ptr + i, total, mask=i < columns)


@triton.jit
def dot_rows(x_ptr, s_ptr, b_ptr, o_ptr, columns, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=0.0)
        total += x * tl.load(s_ptr + i, mask=i < columns, other=0.0)
    for start in range(0, hidden, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(b_ptr + i, mask=i < hidden, other=0.0)
    tl.store(o_ptr + row, tl.sum(total, axis=0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, HIDDEN)

    def forward(self, x):
        hidden, width = self.linear.weight.shape
        sums = torch.empty((width,), device=x.device)
        column_sums[(triton.cdiv(width, 64),)](self.linear.weight, sums, hidden, width, BLOCK=64)
        o = torch.empty((x.shape[0], 1), device=x.device)
        dot_rows[(x.shape[0],)](x, sums, self.linear.bias, o, width, hidden, BLOCK=1024)
        return o
