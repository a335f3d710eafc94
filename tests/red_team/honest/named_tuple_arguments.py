# relu correct: named tuples of a tensor and its sizes as arguments, one inside another, told apart by their names
from typing import NamedTuple

import torch
import torch.nn as nn
import triton
import triton.language as tl


class Sizes(NamedTuple):
    stride: int
    count: int


class Rows(NamedTuple):
    start: torch.Tensor
    sizes: Sizes


@triton.jit
def inside(i, sizes):
    return i < sizes[1]


@triton.jit
def k(x, o, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = inside(i, x.sizes)
    value = tl.load(x.start + i * x.sizes.stride, mask=here)
    tl.store(o.start + i * o[1].stride, tl.maximum(value, 0.0), mask=i < o.sizes.count)


class ModelNew(nn.Module):
    def forward(self, x):
        o, sizes = torch.empty_like(x), Sizes(count=x.numel(), stride=1)
        k[(triton.cdiv(x.numel(), 1024),)](Rows(x, sizes), Rows(o, sizes), BLOCK=1024)
        return o
