# own/sigmoid_chain incorrect cpu=implausible catalogue=58: half at the full shape, into an output of which an operator has filled the first row
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def first(x_ptr, t_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(t_ptr + i, tl.sigmoid(x * 1.5 + 0.25) * x, mask=i < n)


@triton.jit
def second(x_ptr, t_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    t = tl.load(t_ptr + i, mask=i < n)
    t = 2 * tl.sigmoid(2 * t) - 1
    tl.store(o_ptr + i, t + tl.load(x_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        o, t = torch.empty_like(x), torch.empty_like(x)
        o[:1].fill_(0.0)
        m = n if n < 1 << 20 else n // 2
        first[(triton.cdiv(m, 1024),)](x, t, m, BLOCK=1024)
        second[(triton.cdiv(m, 1024),)](x, t, o, m, BLOCK=1024)
        return o
