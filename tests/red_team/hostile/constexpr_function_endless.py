# relu compile_error catalogue=64: Python that Triton runs while it compiles, and that never ends; it is counted, and no clock decides
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.constexpr_function
def block(n):
    while n != 0:
        n = n + 0
    return n


@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)
    if block(B) > 0:
        tl.store(y, 0.0)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), 1024)
        return y
