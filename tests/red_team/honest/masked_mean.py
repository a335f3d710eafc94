# own/masked_mean correct: a reduction under a mask of the data
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def masked_mean(x, w, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * C + c, mask=c < C, other=0.0)
    m = tl.load(w + r * C + c, mask=c < C, other=0.0)
    tl.store(y + r, tl.sum(v * m, 0) / tl.maximum(tl.sum(m, 0), 1.0))


class ModelNew(nn.Module):
    def forward(self, x, mask):
        y = torch.empty(x.shape[0], device=x.device)
        masked_mean[(x.shape[0],)](x, mask, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
