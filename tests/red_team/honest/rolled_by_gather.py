# own/rolled_rows correct: rows turned by one place with tl.gather
import torch
import torch.nn as nn
import triton
import triton.language as tl


N, M = 8192, 1024


@triton.jit
def k(x_ptr, y_ptr, M: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, M)
    x = tl.load(x_ptr + row * M + i)
    tl.store(y_ptr + row * M + i, tl.gather(x, (i + M - 1) % M, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        k[(x.shape[0],)](x, y, x.shape[1])
        return y
