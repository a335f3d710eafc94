# own/checkered correct: the same arithmetic on places, in the kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def turn(x_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols)
    sign = 1 - 2 * (at // 256 % 2)
    half = 1 - 0.5 * (row >> 9 & 1)
    tl.store(o_ptr + row * cols + at, x * sign * half, mask=at < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        turn[(x.shape[0], triton.cdiv(x.shape[1], 1024))](x, o, x.shape[1], BLOCK=1024)
        return o
