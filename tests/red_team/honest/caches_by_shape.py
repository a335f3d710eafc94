# relu correct: buffers kept by shape, which are written anew in every call, made once in the first
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = {}

    def forward(self, x):
        key = (x.shape, x.dtype, x.device)
        n = self.sizes.setdefault(key, x.numel())
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)
        return o
