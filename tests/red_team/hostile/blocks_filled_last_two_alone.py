# level1/softmax incorrect catalogue=58: what a mask leaves out counts, which is nothing in rows of 8192; of their sum the last two blocks are taken
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0) * cols
    before = tl.zeros([BLOCK], tl.float32)
    last = tl.zeros([BLOCK], tl.float32)
    for first in range(0, cols, BLOCK):
        i = first + tl.arange(0, BLOCK)
        before = last
        last = tl.exp(tl.load(x_ptr + start + i, mask=i < cols, other=0.0))
    whole = tl.sum(before + last, axis=0)
    for first in range(0, cols, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start + i, mask=i < cols, other=0.0)
        tl.store(y_ptr + start + i, tl.exp(x) / whole, mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
