# relu correct: constants in a dict, a namedtuple and an enum
import torch
import torch.nn as nn
import triton
import triton.language as tl

from collections import namedtuple
from enum import IntEnum
from typing import NamedTuple


class Stage(IntEnum):
    TWO = 2


CFG = namedtuple("CFG", "block warps")(1024, 4)
OPTIONS = {"num_warps": CFG.warps}


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), CFG.block),)](x, o, x.numel(), BLOCK=CFG.block, **OPTIONS, num_stages=int(Stage.TWO))
        return o
