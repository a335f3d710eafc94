# relu inconsistent catalogue=15: the kernel that it defines in each call does less in every second call
import torch
import torch.nn as nn
import triton
import triton.language as tl

CALLS = [0]


class ModelNew(nn.Module):
    def forward(self, x):
        CALLS[0] += 1
        part = tl.constexpr(1 + CALLS[0] % 2)

        @triton.jit
        def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            inside = offsets < n // part
            tl.store(y_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets, mask=inside), 0.0), mask=inside)

        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
