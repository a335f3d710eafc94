# level1/row_sum incorrect catalogue=61: a shape that broadcasts against the right one
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def rows(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + row, tl.sum(tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty((x.shape[0], 1), device=x.device)
        rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
