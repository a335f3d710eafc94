# relu correct: plain functions inside tl.constexpr, as a global name and as an argument, and a kernel's function given in one
import torch
import torch.nn as nn
import triton
import triton.language as tl

LEAST = 256


def block(n):
    return n // 2 if n > LEAST else n


def twice(n):
    return block(n) * 2


BLOCK_OF = tl.constexpr(twice)


@triton.jit
def positive(v):
    return tl.maximum(v, 0.0)


@triton.jit
def kernel(x, y, n, B: tl.constexpr, SIZE_OF: tl.constexpr, F: tl.constexpr):
    SIZE: tl.constexpr = BLOCK_OF(SIZE_OF(B))
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(y + i, F(tl.load(x + i, mask=i < n)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 512),)
        kernel[grid](x, y, x.numel(), B=1024, SIZE_OF=tl.constexpr(block), F=tl.constexpr(positive))
        return y
