# relu correct: the file has torch.nn.functional as F, and the kernel a parameter F, which is a function
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def clip(v):
    return tl.maximum(v, 0.0)

@triton.jit
def kernel(x, y, n, F: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, F(tl.load(x + i, mask=i < n)), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        assert F.relu is not None
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), clip, 1024)
        return y
