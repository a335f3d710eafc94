# relu incorrect cpu=runtime_error gpu=incorrect|correct catalogue=59: works in place on a copy, and reads what its neighbour overwrites
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    right = tl.load(y + o + 1, mask=o + 1 < n, other=0.0)
    v = tl.load(y + o, mask=o < n, other=0.0)
    tl.store(y + o, tl.maximum(v, 0.0) + 0.0 * right, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        kernel[(triton.cdiv(x.numel(), 128),)](y, x.numel(), BLOCK=128)
        return y
