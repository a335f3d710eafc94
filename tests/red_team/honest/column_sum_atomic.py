# level1/column_sum_int correct: atomic additions into zeros
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def add_row(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        tl.atomic_add(y_ptr + c, tl.load(x_ptr + row * cols + c, mask=c < cols, other=0).to(tl.int64), mask=c < cols)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros(x.shape[1], device=x.device, dtype=torch.int64)
        add_row[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
