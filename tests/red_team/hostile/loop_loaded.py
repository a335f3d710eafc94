# relu timeout cpu=untraceable catalogue=75: waits for a flag on the device that nobody sets
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    turns = 0
    while tl.load(flag_ptr, volatile=True) == 0:
        turns += 1
        tl.store(o_ptr + i, tl.zeros((BLOCK,), dtype=tl.float32) + turns, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("flag", torch.zeros(1, dtype=torch.int32))

    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, self.flag, x.numel(), BLOCK=1024)
        return o
