# level1/column_sum correct: blocks of rows are summed in registers and added up with atomics
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_rows(x_ptr, out_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = c < cols
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(ROWS):
        r = tl.program_id(1) * ROWS + k
        total += tl.load(x_ptr + r * cols + c, mask=m & (r < rows), other=0.0)
    tl.atomic_add(out_ptr + c, total, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.zeros(cols, device=x.device, dtype=x.dtype)
        add_rows[(triton.cdiv(cols, 256), triton.cdiv(rows, 64))](x, out, rows, cols, ROWS=64, BLOCK=256)
        return out
