# own/scalar_gain correct coverage>0.7: reads a parameter where the module is made, and a tensor of numbers on the way; torch computes the exponential of one
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def affine_relu(x, y, gain, shift, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=m, other=0.0), 0.0) * gain + shift, mask=m)


def apply(x, gain, shift):
    y = torch.empty_like(x)
    affine_relu[(triton.cdiv(x.numel(), 1024),)](x, y, gain, shift, x.numel(), BLOCK=1024)
    return y


class ModelNew(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(gain))
        self.shift = nn.Parameter(torch.zeros(1))
        self.register_buffer("eps", torch.tensor(0.125))

        self.half = self.gain.item() * torch.tensor([0.25, 0.25]).sum().item()

    def forward(self, x):
        size = int(torch.prod(torch.tensor(x.shape[1:])).item())
        return apply(x, self.half, self.shift.exp().item() + max(self.eps.item() * size, 0.0))
