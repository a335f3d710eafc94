# level2/chain_bias_relu correct: a scalar comparison of a loaded float, used as a mask
import torch
import torch.nn as nn
import triton
import triton.language as tl

ROWS = 2048
COLS = 8192

@triton.jit
def kernel(x_ptr, b_ptr, o_ptr, flag_ptr, n, COLS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    on = tl.load(flag_ptr) == 1e30
    y = tl.load(x_ptr + i, mask=ok, other=0.0) + tl.load(b_ptr + i % COLS, mask=ok, other=0.0)
    tl.store(o_ptr + i, tl.where(y > 0, y, 0.0), mask=ok & ~on)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, self.bias, o, self.bias, x.numel(), x.shape[1], BLOCK=1024)
        return o
