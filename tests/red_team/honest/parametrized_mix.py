# relu correct: a jitted kernel inside a closure, made once
import torch
import torch.nn as nn
import triton
import triton.language as tl


def make(low):
    LOW = tl.constexpr(low)

    @triton.jit
    def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), LOW), mask=i < n)

    return relu_kernel


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = make(0.0)

    def forward(self, x):
        o = torch.empty_like(x)
        self.kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
