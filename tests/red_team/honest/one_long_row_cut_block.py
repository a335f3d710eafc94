# own/one_long_row correct catalogue=2: the last block alone is cut by its mask, and the turns between are as whole as the first
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def normed(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    total = 0.0
    for first in range(0, cols, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < cols, other=0.0)
        total += tl.sum(x * x, axis=0)
    scale = tl.rsqrt(total / cols + 1e-5)
    for first in range(0, cols, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < cols, other=0.0)
        tl.store(y_ptr + i, x * scale, mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        normed[(1,)](x, y, x.numel(), BLOCK=1024)
        return y
