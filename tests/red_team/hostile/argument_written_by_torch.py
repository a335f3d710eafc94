# own/writes_an_argument no_kernel catalogue=2: torch overwrites what the kernel has written into the argument
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.zeros((BLOCK,), tl.float32), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, out):
        kernel[(triton.cdiv(x.numel(), 1024),)](out, x.numel(), BLOCK=1024)
        torch.clamp_min(x, 0.0, out=out)
