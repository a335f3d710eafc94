# own/scalar_gain correct: functions of numpy on a number of a parameter
import numpy as np

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
        gain = np.float32(0.5) * float(self.gain.item())
        shift = np.exp(self.shift[0].item()) + np.multiply(float(self.eps), x.shape[1])
        return apply(x, gain, shift)
