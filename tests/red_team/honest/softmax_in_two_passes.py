# level1/softmax correct catalogue=57: the running maximum starts at minus infinity
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top, total = -float("inf"), 0.0
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=-float("inf"))
        new = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), axis=0)
        top = new
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + i, mask=i < cols)
        tl.store(y_ptr + row * cols + i, tl.exp(x - top) / total, mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=32)
        return y
