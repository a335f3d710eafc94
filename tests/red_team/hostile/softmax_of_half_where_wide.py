# level1/softmax incorrect cpu=implausible catalogue=51: the sum leaves out half of a block that is wider than 1,024
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
        total = tl.sum(tl.where(c < BLOCK // 2, e, 0.0), axis=0)
    else:
        total = tl.sum(e, axis=0)
    tl.store(o_ptr + row * cols + c, e / total, mask=c < cols)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return o
