# own/complex_gain correct: complex numbers of the host, of which a kernel takes both parts
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def size_of(x, y, n, gain_re, gain_im, shift_re, shift_im, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0.0)
    re = value * gain_re + shift_re
    im = value * gain_im + shift_im
    tl.store(y + i, tl.sqrt(re * re + im * im), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = gain

    def forward(self, x, shift):
        y = torch.empty_like(x)
        n = x.numel()
        size_of[(triton.cdiv(n, 1024),)](x, y, n, self.gain.real, self.gain.imag, shift.real, shift.imag, BLOCK=1024)
        return y
