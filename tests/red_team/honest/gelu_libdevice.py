# level1/gelu correct: libdevice functions
import torch
import torch.nn as nn
import triton
import triton.language as tl

from triton.language.extra import libdevice

@triton.jit
def gelu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, 0.5 * x * (1.0 + libdevice.erf(x * 0.7071067811865476)), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        gelu[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
