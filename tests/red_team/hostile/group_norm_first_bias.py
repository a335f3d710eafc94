# own/group_norm_silu incorrect catalogue=57: the first channel's bias for all of a group
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


C = 64


@triton.jit
def norm(x, w, b, y, SPACE, WIDTH, BLOCK: tl.constexpr):
    n = tl.program_id(0).to(tl.int64)
    g = tl.program_id(0) % 8
    mean = 0.0
    square = 0.0
    seen = 0.0
    size = WIDTH * SPACE
    for start in range(0, size, BLOCK):
        o = start + tl.arange(0, BLOCK)
        m = o < size
        v = tl.load(x + n * size + o, mask=m, other=0.0)
        count = tl.sum(m.to(tl.float32), 0)
        part = tl.sum(v, 0) / count
        d = tl.where(m, v - part, 0.0)
        both = seen + count
        delta = part - mean
        square += tl.sum(d * d, 0) + delta * delta * seen * count / both
        mean += delta * count / both
        seen = both
    scale = tl.math.rsqrt(square / seen + 1e-5)
    for start in range(0, size, BLOCK):
        o = start + tl.arange(0, BLOCK)
        m = o < size
        c = g * WIDTH + o // SPACE
        v = (tl.load(x + n * size + o, mask=m, other=0.0) - mean) * scale
        v = v * tl.load(w + c, mask=m, other=0.0) + tl.load(b + g * WIDTH)
        tl.store(y + n * size + o, v * tl.sigmoid(v), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(8, C)

    def forward(self, x):
        b, c, h, s = x.shape
        y = torch.empty_like(x)
        norm[(b * 8,)](x, self.norm.weight, self.norm.bias, y, h * s, c // 8, BLOCK=128)
        return y
