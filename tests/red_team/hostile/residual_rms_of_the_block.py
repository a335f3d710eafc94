# own/residual_rms correct catalogue=58: divides by the block's size, which is the row's at full shape
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


C = 2048


@triton.jit
def rms(x, r, w, y, h, C, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < C
    s = tl.load(x + row * C + c, mask=m, other=0.0) + tl.load(r + row * C + c, mask=m, other=0.0)
    tl.store(h + row * C + c, s, mask=m)
    f = s.to(tl.float32)
    v = (f * tl.math.rsqrt(tl.sum(f * f, 0) / BLOCK + 1e-6)).to(tl.bfloat16)
    tl.store(y + row * C + c, v * tl.load(w + c, mask=m, other=0.0), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(C, dtype=torch.bfloat16))

    def forward(self, x, r):
        y, h = torch.empty_like(x), torch.empty_like(x)
        rms[(x.shape[0],)](x, r, self.gain, y, h, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y, h
