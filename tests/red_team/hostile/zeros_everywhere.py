# level1/softmax incorrect catalogue=51: zeros, within any absolute tolerance of a softmax over many columns
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def zero(y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.zeros((BLOCK,), dtype=tl.float32), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        zero[(triton.cdiv(x.numel(), 1024),)](y, x.numel(), BLOCK=1024)
        return y
