# relu correct: what a masked load gives outside its mask is a block of its own, and a row's place is looked up behind a number from memory
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, starts_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    mine = tl.load(bins_ptr + tl.program_id(0))
    start = tl.program_id(0) * BLOCK
    if mine > 0:
        start -= tl.load(starts_ptr + mine - 1)
    i = start + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside, other=inside)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        programs = triton.cdiv(x.numel(), 1024)
        bins = torch.zeros(programs, device=x.device, dtype=torch.int32)
        starts = torch.full((1,), x.numel(), device=x.device, dtype=torch.int32)
        kernel[(programs,)](x, o, starts, bins, x.numel(), BLOCK=1024)
        return o
