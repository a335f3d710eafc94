# level2/chain_bias_scale_relu correct catalogue=60: every launch option, and a launch of one block of rows at a time
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 8192


@triton.jit
def kernel(x_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) + tl.load(b_ptr + i % cols, mask=i < n)
    x = tl.maximum(x * 0.5, 0.0)
    tl.store(o_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        o = torch.empty_like(x)
        rows, cols = x.shape
        for start in range(0, rows, 256):
            part, out = x[start : start + 256], o[start : start + 256]
            kernel[(triton.cdiv(part.numel(), 1024), 1, 1)](
                part, self.bias, out, part.numel(), cols, BLOCK=1024, num_warps=4, num_stages=1, num_ctas=1, maxnreg=64
            )
        return o
