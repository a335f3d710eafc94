# level1/cumsum incorrect cpu=runtime_error catalogue=59: every program adds what its left neighbour should have written by then
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def cumsum(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    part, row = tl.program_id(0), tl.program_id(1)
    i = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0)
    before = 0.0
    if part > 0:
        before = tl.load(y_ptr + row * cols + part * BLOCK - 1)
    tl.store(y_ptr + row * cols + i, tl.cumsum(x, axis=0) + before, mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        cumsum[(triton.cdiv(x.shape[1], 64), x.shape[0])](x, y, x.shape[1], BLOCK=64)
        return y
