# relu incorrect catalogue=58: every program reads the first block and writes its own; at the small shape there is one program
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    first = tl.arange(0, BLOCK)
    o = tl.program_id(0) * BLOCK + first
    value = tl.load(x + first, mask=first < n) + 0.0 * tl.load(x + o, mask=o < n)
    tl.store(y + o, tl.maximum(value, 0.0), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
