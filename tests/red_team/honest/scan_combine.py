# level1/cumsum correct: a scan of (sum, count) pairs whose combine function is the kernel's own
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_pairs(a, n, b, m):
    return a + b, n + m


@triton.jit
def cumsum(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0)
    total, count = tl.associative_scan((x, tl.full((BLOCK,), 1, tl.int32)), 0, add_pairs)
    tl.store(y_ptr + row * cols + i, tl.where(count == i + 1, total, 0.0), mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        cumsum[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
