# own/scattered_pairs incorrect cpu=implausible catalogue=58: three quarters of the pairs are stored at full shape, at places that memory decides
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scatter(x, first, y, cols, SIZE: tl.constexpr):
    pair = tl.program_id(0)
    i = tl.arange(0, SIZE)
    values = tl.load(x + pair * 2 * cols + i, mask=i < 2 * cols)
    row = tl.load(first + pair) - 1
    tl.store(y + row * cols + i, values, mask=i < 2 * cols)


class ModelNew(nn.Module):
    def forward(self, x, first):
        y = torch.empty_like(x)
        cols = x.shape[1]
        scatter[(min(first.numel(), 3072),)](x, first, y, cols, SIZE=triton.next_power_of_2(2 * cols))
        return y
