# relu compile_error catalogue=64: a plain function inside tl.constexpr, which Triton runs while it compiles, and that asks the machine
import os

import torch
import torch.nn as nn
import triton
import triton.language as tl


@tl.constexpr
def block(n):
    os.environ["SOMETHING"] = "1"
    return n


@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, block(B))
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), 1024)
        return y
