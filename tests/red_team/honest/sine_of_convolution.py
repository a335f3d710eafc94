# own/sine_of_convolution correct coverage>0: torch's convolution is the reference's own, which tf32 blurs on a GPU
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sine_kernel(x, y, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.sin(tl.load(x + i, mask=i < n, other=0.0) * scale), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 3, padding=1)

    def forward(self, x):
        x = self.conv(x)
        y = torch.empty_like(x)
        sine_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), 300.0, BLOCK=1024)
        return y


C = 32
