# relu correct coverage<1.0: autocast around its kernel, which it does not change
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.autocast('cuda', dtype=torch.bfloat16):
            o = torch.empty_like(x)
            relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        with torch.amp.autocast('cuda', enabled=False):
            return o + 0 * x
