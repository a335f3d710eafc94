# level1/cumsum correct: an associative scan with a function of its own, block by block with a carry
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def cumsum(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    carry = 0.0
    for start in range(0, cols, BLOCK):
        m = start + i < cols
        x = tl.load(x_ptr + row * cols + start + i, mask=m, other=0.0)
        tl.store(y_ptr + row * cols + start + i, tl.associative_scan(x, 0, plus) + carry, mask=m)
        carry += tl.sum(x, axis=0)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        cumsum[(x.shape[0],)](x, y, x.shape[1], BLOCK=min(1024, triton.next_power_of_2(x.shape[1])))
        return y
