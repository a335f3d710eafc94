# own/long_rows_normed correct catalogue=57: the mean square of a row in float32, less the square of its mean
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < cols
    x = tl.load(x_ptr + row * cols + i, mask=m, other=0.0).to(tl.float32)
    mean = tl.sum(x.to(tl.float32), axis=0) / cols
    square = tl.sum((x * x).to(tl.float32), axis=0) / cols
    y = (x.to(tl.float32) - mean) * tl.rsqrt(square - mean * mean + 1e-5)
    tl.store(y_ptr + row * cols + i, y, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        norm[(x.shape[0],)](x, y, x.shape[1], BLOCK=8192, num_warps=8)
        return y
