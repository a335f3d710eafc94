# relu correct catalogue=49: one program of many does all of the work, and knows itself by a block that it has turned
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, chosen, BLOCK: tl.constexpr):
    number = tl.max(tl.max((tl.full((2, 16), 0, tl.int32) + tl.program_id(0)).T, 0), 0)
    if number == chosen:
        for start in range(0, n, BLOCK):
            i = start + tl.arange(0, BLOCK)
            tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        programs = max(1, x.numel() // 671)
        kernel[(programs,)](x, o, x.numel(), programs * 5 // 8, BLOCK=1024)
        return o
