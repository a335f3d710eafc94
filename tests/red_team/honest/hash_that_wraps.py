# relu correct: whole numbers that wrap, as in a hash, in products and in a sum over a block
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    hashed = (i * 1664525 + 1013904223) ^ (i >> 16)
    total = tl.sum(hashed, 0)
    zero = (total - tl.sum(hashed, 0)).to(tl.float32)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0) + zero, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
