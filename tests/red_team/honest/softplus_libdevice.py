# level2/chain_bias_softplus_shift correct: log1p and exp of the device's library
import torch
import torch.nn as nn
import triton
import triton.language as tl

from triton.language.extra import libdevice

COLS = 8192


@triton.jit
def kernel(x_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) + tl.load(b_ptr + i % cols, mask=i < n)
    x = tl.where(x > 20.0, x, libdevice.log1p(libdevice.exp(tl.minimum(x, 20.0)))) - 0.5
    tl.store(o_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, self.bias, o, x.numel(), x.shape[1], BLOCK=1024)
        return o
