# level1/softmax incorrect catalogue=58: made for rows of 8192, of whose sum it takes one half
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, COLS: tl.constexpr):
    i = tl.program_id(0) * COLS + tl.arange(0, COLS)
    x = tl.load(x_ptr + i)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + i, e / tl.sum(tl.where(tl.arange(0, COLS) < COLS // 2, e, 0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, COLS=8192)
        return y
