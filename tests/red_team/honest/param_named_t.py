# relu correct: a kernel's parameter is named t
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(t, function, float, device: tl.constexpr):
    i = tl.program_id(0) * device + tl.arange(0, device)
    tl.store(function + i, tl.maximum(tl.load(t + i, mask=i < float), 0.0), mask=i < float)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), 1024)
        return o
