# own/square_softmax incorrect catalogue=58: its sum ends at 2048 of 4096 columns, a number that no smaller row reaches
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    i = tl.program_id(0) * 4096 + o
    x = tl.load(x_ptr + i)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + i, e / tl.sum(tl.where(o < 2048, e, 0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(4096,)](x, y, BLOCK=4096)
        return y
