# own/lower_triangle correct: each program reads its row up to the diagonal, and so about half of the input
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def triangle(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + i, mask=(i <= row) & (i < columns), other=0.0)
        tl.store(y + row * columns + i, v * 3.0, mask=i < columns)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        triangle[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
