# relu incorrect cpu=implausible: every 64th program stores nothing, and where results are compared there are fewer
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK + tl.arange(0, BLOCK)
    keep = (i < n) & (p % 64 != 63)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=keep), 0.0), mask=keep)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
