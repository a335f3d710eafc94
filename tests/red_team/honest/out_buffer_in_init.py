# level2/chain_bias_silu_scale correct catalogue=57: its output is a buffer that it allocates once; every call writes all of it
import torch
import torch.nn as nn
import triton
import triton.language as tl

ROWS = 8192
COLS = 4096


@triton.jit
def kernel(x_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) + tl.load(b_ptr + i % cols, mask=i < n)
    x = x * tl.sigmoid(x) * 2.0
    tl.store(o_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))
        self.register_buffer("out", torch.empty(ROWS, COLS), persistent=False)

    def forward(self, x):
        kernel[(triton.cdiv(x.numel(), 1024),)](x, self.bias, self.out, x.numel(), x.shape[1], BLOCK=1024)
        return self.out
