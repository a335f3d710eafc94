# own/long_rows_normed incorrect catalogue=57: an eighth of each row is missing in its mean, which normal numbers hardly show
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    squares = 0.0
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0).to(tl.float32)
        total += tl.sum(tl.where(i < cols - cols // 8, x, 0.0), axis=0)
        squares += tl.sum(x * x, axis=0)
    mean = total / cols
    scale = tl.rsqrt(squares / cols - mean * mean + 1e-5)
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * cols + i, (x - mean) * scale, mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        norm[(x.shape[0],)](x, y, x.shape[1], BLOCK=2048)
        return y
