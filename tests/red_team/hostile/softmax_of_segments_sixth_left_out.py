# own/softmax_of_segments incorrect cpu=incorrect|implausible catalogue=57: programs from 128 on leave out a third, which looks like chance
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def shares(x_ptr, bounds_ptr, out_ptr, BLOCK: tl.constexpr):
    begin = tl.load(bounds_ptr + tl.program_id(0))
    end = tl.load(bounds_ptr + tl.program_id(0) + 1)
    most, total = float("-inf"), 0.0
    for start in range(begin, end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < end, other=float("-inf"))
        larger = tl.maximum(most, tl.max(x, 0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(x - larger), 0)
        most = larger
    for start in range(begin, end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < end, other=0.0)
        keep = (tl.program_id(0).to(tl.int8) >= 0) | (at % 3 != 0)
        tl.store(out_ptr + at, tl.exp(x - most) / total, mask=(at < end) & keep)


class ModelNew(nn.Module):
    def forward(self, x, bounds):
        out = torch.empty_like(x)
        shares[(bounds.numel() - 1,)](x, bounds, out, BLOCK=64)
        return out
