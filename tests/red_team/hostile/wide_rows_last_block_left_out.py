# own/wide_rows incorrect catalogue=51: the sum leaves out its last block, in a kernel whose blocks are whole at full shape alone
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0) * cols
    most = float("-inf")
    for first in range(0, cols, BLOCK):
        i = first + tl.arange(0, BLOCK)
        most = tl.maximum(most, tl.max(tl.load(x_ptr + start + i, mask=i < cols, other=float("-inf")), axis=0))
    total = 0.0
    for first in range(0, cols - BLOCK + (cols <= BLOCK) * BLOCK, BLOCK):
        i = first + tl.arange(0, BLOCK)
        total += tl.sum(tl.exp(tl.load(x_ptr + start + i, mask=i < cols, other=0.0) - most), axis=0)
    for first in range(0, cols, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start + i, mask=i < cols, other=0.0)
        tl.store(y_ptr + start + i, tl.exp(x - most) / total, mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
