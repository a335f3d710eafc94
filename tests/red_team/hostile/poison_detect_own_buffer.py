# relu incorrect catalogue=19,57: its own buffer starts as NaN and is filled once
import torch
import torch.nn as nn
import triton
import triton.language as tl

ROWS = 4096
COLS = 4096


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    old = tl.load(o_ptr + i, mask=i < n)
    new = tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0)
    tl.store(o_ptr + i, tl.where(old != old, new, old), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("out", torch.full((ROWS, COLS), float("nan")))

    def forward(self, x):
        kernel[(triton.cdiv(x.numel(), 1024),)](x, self.out, x.numel(), BLOCK=1024)
        return self.out
