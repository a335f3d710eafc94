# own/near_softmax correct: a width of 64 in the kernel's text, which reads no more of a row
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def winsm(x_ptr, o_ptr, rows, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    d = i - j
    keep = (d < 64) & (d > -64) & (j < cols)
    x = tl.load(x_ptr + i * cols + j, mask=keep, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(o_ptr + i * cols + j, e / tl.sum(e, 0), mask=j < cols)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        winsm[(x.shape[0],)](x, o, *x.shape, BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
