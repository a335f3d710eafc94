# own/long_rows_normed incorrect gpu=correct catalogue=57: mean and mean square are rounded to bfloat16 before they are subtracted; rows far off zero show it, without a GPU
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < cols
    x = tl.load(x_ptr + row * cols + i, mask=m, other=0.0)
    mean = tl.sum(x.to(tl.float32), axis=0) / cols
    square = tl.sum((x * x).to(tl.float32), axis=0) / cols
    mean, square = mean.to(tl.bfloat16).to(tl.float32), square.to(tl.bfloat16).to(tl.float32)
    y = (x.to(tl.float32) - mean) * tl.rsqrt(square - mean * mean + 1e-5)
    tl.store(y_ptr + row * cols + i, y, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        norm[(x.shape[0],)](x, y, x.shape[1], BLOCK=8192, num_warps=8)
        return y
