# relu correct: Python that Triton runs while it compiles, which calls itself and another such function, in a block's size and in a grid
import math

import torch
import torch.nn as nn
import triton
import triton.language as tl

LEAST = 256


@triton.constexpr_function
def power_above(n):
    size = 1
    while size < n:
        size *= 2
    return size


@triton.constexpr_function
def block(n, parts=2):
    if parts == 1:
        return max(power_above(n), LEAST)
    return block(n // parts, 1) * int(math.log2(4))


@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    SIZE: tl.constexpr = block(B)
    i = tl.program_id(0) * SIZE + tl.arange(0, block(B))
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), block(1000)),)](x, y, x.numel(), 1000)
        return y
