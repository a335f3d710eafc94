# relu correct: constexpr imported by its own name and under another one, as annotations
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language import constexpr, constexpr as const

@triton.jit
def kernel(x, y, n, B: constexpr, LOW: const = 0.0):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), LOW), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), B=1024)
        return y
