# own/scalar_gain correct coverage>0.2: numbers of parameters as operands of torch operators, and in a tensor of their own
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

    def forward(self, x):
        y = apply(x, self.gain.item(), 0.0).mul(0.5)
        y = torch.add(y, torch.tensor([self.eps.item()], device=x.device), alpha=x.shape[1])
        return y + torch.full((1,), self.shift.item(), device=x.device).exp()
