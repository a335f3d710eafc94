# level1/leaky_relu correct: helper functions, a function as constant, global constexpr
import torch
import torch.nn as nn
import triton
import triton.language as tl

SLOPE = tl.constexpr(0.1)
USE: tl.constexpr = True

@triton.jit
def identity(x):
    return x

@triton.jit
def leaky(x):
    return tl.where(x > 0, x, SLOPE * x)

@triton.jit
def apply(x_ptr, y_ptr, n, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if USE:
        x = ACTIVATION(x)
    tl.store(y_ptr + i, identity(x), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        apply[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), ACTIVATION=leaky, BLOCK=1024)
        return y
