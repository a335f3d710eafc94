# level2/chain_silu_shift_abs correct catalogue=12: a partial function, a cache of grids, a constant tensor made once
import torch
import torch.nn as nn
import triton
import triton.language as tl

from functools import lru_cache, partial


@triton.jit
def kernel(x_ptr, o_ptr, shift_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.abs(x * tl.sigmoid(x) - tl.load(shift_ptr)), mask=i < n)


@lru_cache(maxsize=None)
def grid_of(n, block):
    return (triton.cdiv(n, block),)


def launch(x, o, shift, block):
    kernel[grid_of(x.numel(), block)](x, o, shift, x.numel(), BLOCK=block)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.tensor([0.5]))
        self.run = partial(launch, block=1024)

    def forward(self, x):
        o = torch.empty_like(x)
        self.run(x, o, self.shift)
        return o
