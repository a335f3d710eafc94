# relu correct: the activation is a jitted function handed over as a constant
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def act(x):
    return tl.maximum(x, 0.0)


@triton.jit
def k(x_ptr, o_ptr, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, ACT(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), ACT=act, BLOCK=1024)
        return o
