# own/conv_channels_last correct coverage<0.9: the same, made contiguous before the kernel
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def scaled_relu(x, y, n, scale, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=m, other=0.0), 0.0) * scale, mask=m)


def relu(x, scale=1.0):
    y = torch.empty_like(x)
    scaled_relu[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), scale, BLOCK=1024)
    return y


C = 64


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 3, padding=1).to(memory_format=torch.channels_last)

    def forward(self, x):
        return relu(self.conv(x).contiguous())
