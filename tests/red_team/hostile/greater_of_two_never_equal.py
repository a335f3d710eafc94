# own/greater_of_two incorrect catalogue=57: > for >=; numbers of two inputs never meet
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    tl.store(o + i, tl.where(a > b, tl.exp(a), -b), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
        return o
