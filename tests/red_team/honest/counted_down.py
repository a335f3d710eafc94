# own/counted_down correct catalogue=51: the reference counts down to zero, and would never come there from half of its count
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def counted(x_ptr, n_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols)
    n = tl.load(n_ptr + row)
    tl.store(o_ptr + row * cols + c, x * (n // 4).to(tl.float32), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x, n):
        o = torch.empty_like(x)
        counted[(x.shape[0],)](x, n, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
