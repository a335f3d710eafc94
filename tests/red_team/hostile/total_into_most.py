# own/total_into incorrect catalogue=57: one block in eight is left out of the sum
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    i = block * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=(i < n) & (block % 8 < 7), other=0.0)), sem="relaxed")


class ModelNew(nn.Module):
    def forward(self, x, out):
        total[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
