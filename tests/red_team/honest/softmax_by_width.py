# level1/softmax correct: blocks wider than 1,024 are divided by a reciprocal, narrower ones as they are
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def softmax(x_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    if BLOCK > 1024:
        y = e * (1.0 / tl.sum(e, axis=0))
    else:
        y = e / tl.sum(e, axis=0)
    tl.store(o_ptr + row * cols + c, y, mask=c < cols)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return o
