# own/conv_transpose correct coverage<0.9: a transposed convolution whose arguments are given by keyword
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


C = 32


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(C, C, 3, 3) * 0.1)
        self.bias = nn.Parameter(torch.randn(C))

    def forward(self, x):
        return relu(torch.ops.aten.convolution(
            bias=self.bias, weight=self.weight, input=x, stride=[2, 2], padding=[0, 0], dilation=[1, 1], transposed=True,
            output_padding=[0, 0], groups=1))
