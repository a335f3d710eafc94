# level2/conv2d_bias_relu incorrect cpu=implausible: every program takes the first block, in place; no store is missing where the grid has one program
import torch
import torch.nn as nn
import triton
import triton.language as tl

import torch.nn.functional as F

CHANNELS = 64


@triton.jit
def bias_relu_(y_ptr, b_ptr, n, pixels, channels, BLOCK: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < n) + tl.load(b_ptr + (i // pixels) % channels, mask=i < n)
    tl.store(y_ptr + i, tl.maximum(y, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CHANNELS, CHANNELS, 3, 3))
        self.bias = nn.Parameter(torch.randn(CHANNELS))

    def forward(self, x):
        y = F.conv2d(x, self.weight, padding=1).contiguous()
        n, channels, pixels = y.numel(), y.shape[1], y.shape[2] * y.shape[3]
        bias_relu_[(triton.cdiv(n, 1024),)](y, self.bias, n, pixels, channels, BLOCK=1024)
        return y
