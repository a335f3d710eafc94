# level1/row_sum incorrect catalogue=54: adds up float32 values in half precision
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def rows(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0).to(tl.float16)
    tl.store(y_ptr + row, tl.sum(x, axis=0).to(tl.float32))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
