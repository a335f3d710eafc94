# relu incorrect gpu=out_of_bounds|incorrect|correct catalogue=57: calls four offsets neighbours of which the last is the first again; on a card it is right where the compiler makes nothing of it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    again = tl.where(o % 4 == 3, o - 3, o)
    said = tl.max_contiguous(tl.multiple_of(again, 4), 4)
    nothing = tl.load(x + said, mask=o < n, other=0.0) - tl.load(x + again, mask=o < n, other=0.0)
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n, other=0.0) + nothing, 0.0), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
