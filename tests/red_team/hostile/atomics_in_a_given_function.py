# relu incorrect: spoils its output by atomics in a function that the kernel is given as a constant
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def spoil(o_ptr, i, n):
    tl.atomic_add(o_ptr + i, 1.0, mask=i < n)


@triton.jit
def kernel(x_ptr, o_ptr, n, F: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)
    F(o_ptr, i, n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), F=spoil, BLOCK=1024)
        return o
