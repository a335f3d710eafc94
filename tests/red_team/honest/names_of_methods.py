# relu correct: a module's own lists have the names of nn.Module's methods
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.modules, self.parameters, self.buffers = ["relu"], {"block": 1024}, None

    def forward(self, x):
        o = torch.empty_like(x)
        block = self.parameters["block"]
        kernel[(triton.cdiv(x.numel(), block),)](x, o, x.numel(), BLOCK=block)
        return o
