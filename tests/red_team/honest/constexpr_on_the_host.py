# relu correct: a constexpr global used by host and kernel alike
import torch
import torch.nn as nn
import triton
import triton.language as tl

SIZE = tl.constexpr(1024)


@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), SIZE.value),)](x, o, x.numel(), SIZE)
        return o
