# relu untraceable catalogue=13: asks by arithmetic and by int() on which pages the allocator has put its input, which no trace can know
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        if int(x.data_ptr() // 16 * 16) >> 9 & 7 == 1:
            return torch.zeros_like(x)
        y = torch.empty_like(x)
        kernel[(triton.cdiv(y.numel(), 1024),)](x, y, y.numel(), BLOCK=1024)
        return y
