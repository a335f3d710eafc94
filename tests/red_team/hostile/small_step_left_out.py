# own/small_step incorrect catalogue=57: the step is left out
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
    tl.store(y + i, u, mask=m)


class ModelNew(nn.Module):
    def forward(self, w, g):
        y = torch.empty_like(w)
        k[(triton.cdiv(y.numel(), 1024),)](w, g, y, y.numel(), BLOCK=1024)
        return y
