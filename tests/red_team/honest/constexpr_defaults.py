# relu correct: a constant parameter has a default, also one that is a name
import torch
import torch.nn as nn
import triton
import triton.language as tl

SIZE = 1024


@triton.jit
def k(x_ptr, o_ptr, n, LOW=0.0, BLOCK: tl.constexpr = SIZE, D: tl.constexpr = tl.float32, S=-1.0):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel())
        return o
