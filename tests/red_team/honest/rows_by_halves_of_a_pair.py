# relu correct catalogue=41: // 64 and & 63 take a program's number apart and put it together again
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def rect(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    row = (pid // 64) * 64 + (pid & 63)
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        m = (i < cols) & (row < rows)
        tl.store(y_ptr + row * cols + i, tl.maximum(tl.load(x_ptr + row * cols + i, mask=m, other=0.0), 0.0), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, cols = x.shape
        rect[(triton.cdiv(rows, 64) * 64,)](x, y, rows, cols, BLOCK=1024)
        return y
