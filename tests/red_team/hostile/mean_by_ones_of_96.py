# own/mean_by_ones incorrect catalogue=51: divides by 96, as many as ones are added where results are compared first
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def mean_row(x_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < cols
    x = tl.load(x_ptr + row * cols + c, mask=m, other=0.0)
    tl.store(o_ptr + row, tl.sum(x, axis=0) / 96)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        mean_row[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
