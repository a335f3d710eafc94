# level1/column_sum incorrect cpu=runtime_error catalogue=59: programs load, add and store the same elements without atomics
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def add_rows(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(ROWS):
        r = tl.program_id(0) * ROWS + k
        acc += tl.load(x_ptr + r * cols + c, mask=(r < rows) & (c < cols), other=0.0)
    tl.store(y_ptr + c, tl.load(y_ptr + c, mask=c < cols) + acc, mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.zeros(cols, device=x.device)
        add_rows[(triton.cdiv(rows, 8), triton.cdiv(cols, 1024))](x, y, rows, cols, ROWS=8, BLOCK=1024)
        return y
