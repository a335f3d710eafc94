# own/index_of_runs correct: says of places from memory that they are neighbours, which they are
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, i_ptr, o_ptr, C, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    at = tl.load(i_ptr + i, mask=i < C, other=0)
    at = tl.max_contiguous(tl.multiple_of(at, 16), 16)
    tl.store(o_ptr + row * C + i, tl.load(x_ptr + row * C + at, mask=i < C), mask=i < C)


class ModelNew(nn.Module):
    def forward(self, x, idx):
        o = torch.empty_like(x)
        kernel[(x.shape[0],)](x, idx, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
