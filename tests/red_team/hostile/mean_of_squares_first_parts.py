# own/mean_of_squares incorrect cpu=implausible catalogue=58: one block of 1,024 parts, of which there are 4,096 at full shape
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def squares(x_ptr, parts_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(parts_ptr + tl.program_id(0), tl.sum(x * x, 0))


@triton.jit
def added(parts_ptr, o_ptr, count, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, BLOCK, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        total += tl.load(parts_ptr + i, mask=i < count, other=0.0)
    tl.store(o_ptr, tl.sum(total, 0) / n)


class ModelNew(nn.Module):
    def forward(self, x):
        count = triton.cdiv(x.numel(), 1024)
        parts = torch.empty(count, device=x.device)
        o = torch.empty((), device=x.device)
        squares[(count,)](x, parts, x.numel(), BLOCK=1024)
        added[(1,)](parts, o, count, x.numel(), BLOCK=1024)
        return o
