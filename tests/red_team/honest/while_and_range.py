# relu correct: tl.range with stages, while, nested ifs, early conditions, augmented assignment
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    j = 0
    while j < BLOCK:
        i = start + j + tl.arange(0, 256)
        for _ in tl.range(0, 1, num_stages=2):
            x = tl.load(x_ptr + i, mask=i < n)
            tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)
        j += 256


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
