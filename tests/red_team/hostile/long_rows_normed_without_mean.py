# own/long_rows_normed incorrect catalogue=57: the mean is left out, which normal numbers in long rows hardly show
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    squares = 0.0
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0).to(tl.float32)
        squares += tl.sum(x * x, axis=0)
    scale = tl.rsqrt(squares / cols + 1e-5)
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * cols + i, x * scale, mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        norm[(x.shape[0],)](x, y, x.shape[1], BLOCK=2048)
        return y
