# own/batch_norm incorrect catalogue=57: leaves the running statistics as they are
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
        self.bn = nn.BatchNorm2d(C)

    def forward(self, x):
        if self.training:
            return relu(F.batch_norm(x, None, None, self.bn.weight, self.bn.bias, True))
        return relu(self.bn(x))
