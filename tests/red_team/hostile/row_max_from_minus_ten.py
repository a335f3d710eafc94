# level1/row_max incorrect catalogue=57: the maximum starts at -10; rows below that show it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_max(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best = tl.full((BLOCK,), -10.0, dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.load(x_ptr + row * cols + i, mask=i < cols, other=-10.0))
    tl.store(y_ptr + row, tl.max(best, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        row_max[(x.shape[0],)](x, y, x.shape[1], BLOCK=32)
        return y
