# own/row_mean incorrect catalogue=51: one step of 32 counts nothing, which no fixed number says: what it is held against is computed
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def mean_row(x_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, cols, BLOCK):
        c = begin + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
        total += tl.where(c // BLOCK != BLOCK // 16, x, 0.0)
    tl.store(o_ptr + row, tl.sum(total, axis=0) / cols)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        mean_row[(x.shape[0],)](x, o, x.shape[1], BLOCK=128)
        return o
