# own/row_softmax correct catalogue=51: has the number 96, and is right at any other size
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, o_ptr, rows, cols, APART: tl.constexpr, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, APART):
        c = tl.arange(0, BLOCK)
        m = c < cols
        x = tl.load(x_ptr + row * cols + c, mask=m, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(o_ptr + row * cols + c, e / tl.sum(e, axis=0), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        programs = min(x.shape[0], 96)
        softmax[(programs,)](x, o, *x.shape, APART=programs, BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
