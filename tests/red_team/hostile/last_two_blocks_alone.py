# own/row_total incorrect catalogue=58: a row sum that keeps its last two blocks alone; at the small shape there are two blocks
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    before, last = 0.0, 0.0
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        before = last
        last = tl.sum(tl.load(x_ptr + row + i, mask=i < cols, other=0.0), axis=0)
    tl.store(y_ptr + tl.program_id(0), before + last)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        total[(x.shape[0],)](x, y, x.shape[1], BLOCK=512)
        return y
