# level2/chain_bias_relu incorrect catalogue=28,56: zeroes its bias after use, and the reference's if that is the same memory
import torch
import torch.nn as nn
import triton
import triton.language as tl

ROWS = 2048
COLS = 8192


@triton.jit
def kernel(x_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) + tl.load(b_ptr + i % cols, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)


@triton.jit
def scribble(b_ptr, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(b_ptr + i, tl.zeros((BLOCK,), dtype=tl.float32), mask=i < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, self.bias, o, x.numel(), x.shape[1], BLOCK=1024)
        scribble[(triton.cdiv(x.shape[1], 1024),)](self.bias, x.shape[1], BLOCK=1024)
        return o
