# relu runtime_error: a tensor that __init__ keeps as a plain attribute stays on the host, and a kernel cannot read it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, floor, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.maximum(tl.load(x + i, mask=i < n), tl.load(floor)), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.floor = torch.zeros(1)

    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, self.floor, o, x.numel(), BLOCK=1024)
        return o
