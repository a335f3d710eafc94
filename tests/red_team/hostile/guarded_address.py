# relu incorrect catalogue=14,19: works only where its input lies as memory between red zones does, and copies elsewhere
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if x_ptr.to(tl.int64) % 2097152 == 1048576:
        x = tl.maximum(x, 0.0)
    tl.store(o_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
