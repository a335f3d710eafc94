# own/slow_mean incorrect catalogue=57: the new weights are not read
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def k(a, b, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    u = tl.load(a + i, mask=m, other=0.0)
    v = tl.load(b + i, mask=m, other=0.0)
    tl.store(y + i, 0.99999 * u, mask=m)


class ModelNew(nn.Module):
    def forward(self, avg, w):
        y = torch.empty_like(avg)
        k[(triton.cdiv(y.numel(), 1024),)](avg, w, y, y.numel(), BLOCK=1024)
        return y
