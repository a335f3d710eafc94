# own/mean_of_squares correct catalogue=58: one program adds up 4,096 parts by a loop that takes one turn at the small shape
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
    for begin in range(0, count, BLOCK):
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
