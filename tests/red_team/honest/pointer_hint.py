# relu correct catalogue=33: a hint about a block of pointers, whose neighbours are an element apart
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = tl.max_contiguous(tl.multiple_of(x_ptr + i, 16), BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(p, mask=i < n, other=0.0), 0.0), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        n = x.numel()
        k[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)
        return o
