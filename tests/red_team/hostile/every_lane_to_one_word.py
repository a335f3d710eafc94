# own/squares_total correct gpu=incorrect speedup<1 catalogue=35: one word gets each element by an atomic of its own, and float32 ends at 2^24
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(o_ptr + tl.zeros((BLOCK,), tl.int32), x * x + 1.0, mask=i < n, sem="relaxed")


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.zeros((), device=x.device)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
