# level2/chain_bias_clamp_silu correct catalogue=40,49: launches its kernel once when it is made, to have it compiled
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 4096


@triton.jit
def kernel(x_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) + tl.load(b_ptr + i % cols, mask=i < n)
    x = tl.minimum(tl.maximum(x, -2.0), 2.0)
    x = x * tl.sigmoid(x)
    tl.store(o_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))
        dummy = torch.zeros(1, COLS, device="cuda")
        kernel[(triton.cdiv(COLS, 1024),)](dummy, self.bias.cuda(), torch.empty_like(dummy), COLS, COLS, BLOCK=1024)
        torch.cuda.synchronize()

    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, self.bias, o, x.numel(), x.shape[1], BLOCK=1024)
        return o
