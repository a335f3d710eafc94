# relu correct: a tuple of tensors and a tuple of sizes as arguments
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(pointers, sizes, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(pointers[1] + i, tl.maximum(tl.load(pointers[0] + i, mask=i < sizes[0]), 0.0), mask=i < sizes[0])


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)]((x, o), (x.numel(), 1), BLOCK=1024)
        return o
