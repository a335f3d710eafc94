# level2/quantize_int8 correct: rounding to int8 in the kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def quantize(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) * 32.0
    low = tl.floor(x)
    part = x - low
    odd = (low.to(tl.int32) & 1) == 1
    up = (part > 0.5) | ((part == 0.5) & odd)
    x = tl.where(up, low + 1.0, low)
    tl.store(y_ptr + i, tl.clamp(x, -128.0, 127.0).to(tl.int8), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape, dtype=torch.int8, device=x.device)
        quantize[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
