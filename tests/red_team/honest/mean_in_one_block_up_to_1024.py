# own/row_mean correct: rows of up to 1,024 in one block, longer ones in a loop; only the first way is taken where results are compared first
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def mean_row(x_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    total = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    if cols > 1024:
        for start in range(BLOCK, cols, BLOCK):
            more = start + tl.arange(0, BLOCK)
            total += tl.load(x_ptr + row * cols + more, mask=more < cols, other=0.0)
    tl.store(o_ptr + row, tl.sum(total, axis=0) / cols)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        mean_row[(x.shape[0],)](x, o, x.shape[1], BLOCK=1024)
        return o
