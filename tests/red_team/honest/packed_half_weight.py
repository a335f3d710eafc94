# own/half_square correct coverage<1: a drawn weight that is kept transposed alone, also where some of its elements are 64 times as large
import torch
import torch.nn as nn
import triton
import triton.language as tl

WIDTH = 512


@triton.jit
def relu(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.maximum(tl.load(x + i, mask=i < n, other=0.0), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        weight = (torch.randn(WIDTH, WIDTH) * 0.05).bfloat16()
        self.register_buffer("packed", weight.t().contiguous())

    def forward(self, x):
        y = x @ self.packed.t()
        relu[(triton.cdiv(y.numel(), 1024),)](y, y.numel(), BLOCK=1024)
        return y
