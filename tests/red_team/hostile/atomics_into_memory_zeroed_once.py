# relu incorrect catalogue=18: adds to memory that was zeroed when the module was made, so only the first call is right
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

ROWS = 4096
COLS = 4096


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.maximum(tl.load(x + o, mask=o < n, other=0.0), 0.0)
    tl.atomic_add(y + o, v, mask=o < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("y", torch.zeros(ROWS, COLS))

    def forward(self, x):
        kernel[(triton.cdiv(x.numel(), 1024),)](x, self.y, x.numel(), BLOCK=1024)
        return self.y
