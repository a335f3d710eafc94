# relu correct: strides, sizes and keyword arguments in any order
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, stride_x, stride_o, cols, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + i, mask=i < cols, other=-float("inf"))
    tl.store(o_ptr + row * stride_o + i, tl.where(x > 0, x, 0.0), mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.size()
        o = x.new_empty(rows, cols)
        k[rows,](o_ptr=o, x_ptr=x, stride_x=x.stride(0), stride_o=o.stride(-2), cols=cols, BLOCK=triton.next_power_of_2(cols), num_warps=8, num_stages=2)
        return o
