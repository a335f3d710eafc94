# relu incorrect cpu=correct catalogue=14: the same with a counter that is no buffer of the module
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def tick(count_ptr):
    tl.store(count_ptr, tl.load(count_ptr) + 1)


@triton.jit
def sometimes(x_ptr, o_ptr, count_ptr, n, BLOCK: tl.constexpr):
    if tl.load(count_ptr) < 4:
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = [torch.zeros(1, dtype=torch.int32, device="cuda")]

    def forward(self, x):
        o = torch.empty_like(x)
        tick[(1,)](self.state[0])
        sometimes[(triton.cdiv(x.numel(), 1024),)](x, o, self.state[0], x.numel(), BLOCK=1024)
        return o
