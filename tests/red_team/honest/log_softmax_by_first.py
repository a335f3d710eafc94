# level1/log_softmax correct catalogue=57: the maximum is taken off for the sum alone
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_softmax(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=-float("inf"))
    top = tl.max(x, axis=0)
    y = x - (top + tl.log(tl.sum(tl.exp(x - top), axis=0)))
    tl.store(y_ptr + row * cols + i, y, mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        log_softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return y
