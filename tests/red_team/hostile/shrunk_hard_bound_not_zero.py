# own/shrunk_hard incorrect catalogue=51: of what is shrunk, the limit itself is not
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def shrunk(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.where(x > 0.5, x, -1.0) + tl.where(tl.abs(x) < 0.25, 0.0, x)
    tl.store(y_ptr + at, y, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        shrunk[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
