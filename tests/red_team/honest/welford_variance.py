# level1/row_variance correct: mean and squares merged block by block
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def variance(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    count, mean, squares = 0.0, 0.0, 0.0
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        m = i < cols
        x = tl.load(x_ptr + row * cols + i, mask=m, other=0.0)
        n = tl.sum(m.to(tl.float32), axis=0)
        own = tl.sum(x, axis=0) / n
        d = tl.where(m, x - own, 0.0)
        delta = own - mean
        whole = count + n
        mean += delta * n / whole
        squares += tl.sum(d * d, axis=0) + delta * delta * count * n / whole
        count = whole
    tl.store(y_ptr + row, squares / (count - 1.0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        variance[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
