# level1/softmax incorrect catalogue=55: a Taylor series for the exponential, good near zero
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def softmax(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0)
    x = (x - tl.max(x, axis=0)) / 4.0
    e = 1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x / 720.0)))))
    e = e * e
    e = tl.where(i < cols, e * e, 0.0)
    tl.store(y_ptr + row * cols + i, e / tl.sum(e, axis=0), mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
