# level1/column_sum_int correct: two kernels through a partial buffer
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def partial(x_ptr, p_ptr, rows, cols, chunk, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.program_id(1)
    acc = tl.zeros((BLOCK,), dtype=tl.int64)
    for r in range(part * chunk, tl.minimum((part + 1) * chunk, rows)):
        acc += tl.load(x_ptr + r * cols + c, mask=c < cols, other=0).to(tl.int64)
    tl.store(p_ptr + part * cols + c, acc, mask=c < cols)

@triton.jit
def final(p_ptr, y_ptr, parts, cols, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.int64)
    for p in range(parts):
        acc += tl.load(p_ptr + p * cols + c, mask=c < cols, other=0)
    tl.store(y_ptr + c, acc, mask=c < cols)

class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        parts = min(rows, 32)
        p = torch.empty((parts, cols), device=x.device, dtype=torch.int64)
        y = torch.empty((cols,), device=x.device, dtype=torch.int64)
        partial[(triton.cdiv(cols, 128), parts)](x, p, rows, cols, triton.cdiv(rows, parts), BLOCK=128)
        final[(triton.cdiv(cols, 128),)](p, y, parts, cols, BLOCK=128)
        return y
