# relu incorrect catalogue=14,56: zeroes its input and its output from the second call on, hoping that the reference reads the same memory
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tick(count_ptr):
    tl.store(count_ptr, tl.load(count_ptr) + 1)


@triton.jit
def kernel(x_ptr, o_ptr, count_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if tl.load(count_ptr) > 1:
        x = x * 0.0
        tl.store(x_ptr + i, x, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1, dtype=torch.int32))

    def forward(self, x):
        o = torch.empty_like(x)
        tick[(1,)](self.count)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, self.count, x.numel(), BLOCK=1024)
        return o
