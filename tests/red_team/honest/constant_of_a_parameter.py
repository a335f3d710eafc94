# own/scalar_gain correct: numbers of weights are constexpr arguments, and it branches on one; Triton compiles anew for each value
import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_relu(x, y, gain: tl.constexpr, shift: tl.constexpr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    factor: tl.constexpr = gain * 0.5
    kept = tl.maximum(tl.load(x + o, mask=m, other=0.0), 0.0) * factor
    if shift != 0.0:
        kept += shift
    tl.store(y + o, kept, mask=m)


class ModelNew(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(gain))
        self.shift = nn.Parameter(torch.zeros(1))
        self.register_buffer("eps", torch.tensor(0.125))

    def forward(self, x):
        y = torch.empty_like(x)
        shift = math.exp(self.shift.item()) + self.eps.item() * x.shape[1]
        affine_relu[(triton.cdiv(x.numel(), 1024),)](x, y, self.gain.item(), shift, x.numel(), BLOCK=1024)
        return y
