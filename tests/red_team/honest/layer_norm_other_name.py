# own/layer_norm_affine correct: its parameters have other names, and the same shapes in the same order
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


C = 1024


@triton.jit
def norm(x, w, b, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < C
    v = tl.load(x + r * C + c, mask=m, other=0.0)
    mean = tl.sum(v, 0) / C
    d = tl.where(m, v - mean, 0.0)
    v = d / tl.sqrt(tl.sum(d * d, 0) / C + 1e-5)
    tl.store(y + r * C + c, v * tl.load(w + c, mask=m, other=0.0) + tl.load(b + c, mask=m, other=0.0), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(C)

    def forward(self, x):
        y = torch.empty_like(x)
        n = self.ln
        norm[(x.shape[0],)](x, n.weight, n.bias, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
