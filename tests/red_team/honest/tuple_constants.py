# relu correct: a constant tuple, and a tuple that holds None
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(pointers, n, shape: tl.constexpr):
    i = tl.program_id(0) * shape[0] + tl.arange(0, shape[0])
    x = tl.load(pointers[0] + i, mask=i < n)
    if pointers[2] is not None:
        x += tl.load(pointers[2] + i, mask=i < n)
    tl.store(pointers[1] + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)]((x, o, None), x.numel(), shape=(1024, 2))
        return o
