# level1/row_argmax correct: reduction with indices
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def argmax(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=float("-inf"))
    tl.store(y_ptr + row, tl.argmax(x, axis=0).to(tl.int64))

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=torch.long)
        argmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
