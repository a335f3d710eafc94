# relu untraceable catalogue=64: Python that Triton would run while it compiles: it is not a kernel's text, and the message says what to do instead
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.constexpr_function
def block(n):
    return 2 * n

@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    SIZE: tl.constexpr = block(B)
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), 512)
        return y
