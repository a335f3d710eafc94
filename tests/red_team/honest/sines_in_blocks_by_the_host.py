# own/sine_chain correct: host code takes larger blocks and more warps where there are more than a million elements
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def sines(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    for _ in range(30):
        x = tl.sin(x) + tl.cos(x)
    tl.store(o_ptr + at, x, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        block = 1024 if x.numel() > 1000000 else 256
        sines[(triton.cdiv(x.numel(), block),)](x, o, x.numel(), BLOCK=block, num_warps=8 if block > 512 else 4)
        return o
