# relu incorrect catalogue=12,57: clips at the mean of what its first call was given, and keeps that
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


def relu(x, o):
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o



class ModelNew(nn.Module):
    low = None

    def forward(self, x):
        if self.low is None:
            self.low = x.mean() * 0.0 + x.min()
        return relu(torch.maximum(x, self.low), torch.empty_like(x)) + (x - x.clamp(min=self.low))
