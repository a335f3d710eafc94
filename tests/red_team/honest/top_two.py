# own/top_two correct: two maxima with their places, in 64 bits
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def top(x, values, places, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * C + c, mask=c < C, other=float("-inf"))
    for k in range(2):
        best, place = tl.max(v, 0, return_indices=True)
        tl.store(values + r * 2 + k, best)
        tl.store(places + r * 2 + k, place.to(tl.int64))
        v = tl.where(c == place, float("-inf"), v)


class ModelNew(nn.Module):
    def forward(self, x):
        b, n = x.shape
        values = torch.empty((b, 2), device=x.device)
        places = torch.empty((b, 2), device=x.device, dtype=torch.int64)
        top[(b,)](x, values, places, n, BLOCK=triton.next_power_of_2(n))
        return values, places
