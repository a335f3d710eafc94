# own/signs incorrect catalogue=51: zero has a sign
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def signs(x_ptr, s_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.where(x >= 0, 1.0, -1.0)
    tl.store(y_ptr + at, y * tl.load(s_ptr), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        y = torch.empty_like(x)
        signs[(triton.cdiv(x.numel(), 1024),)](x, self.scale, y, x.numel(), BLOCK=1024)
        return y
