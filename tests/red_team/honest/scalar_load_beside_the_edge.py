# relu correct: a single element behind a mask, whose `other` is zero: given, and not absent
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu(x, floors, y, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK + tl.arange(0, BLOCK)
    floor = tl.load(floors + p - 1, mask=p < 0, other=0.0)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n, other=floor), floor), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu[(triton.cdiv(x.numel(), 1024),)](x, x, y, x.numel(), BLOCK=1024)
        return y
