# relu correct coverage<1.0: contiguous, view, reshape, flatten, unflatten, transposes and in-place views before its kernel
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
        shape = x.shape
        y = x.contiguous().view(-1, shape[-1]).t().t().reshape(-1).unflatten(0, shape).flatten()
        y = y.unsqueeze_(0).squeeze_(0)
        x = y
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o.view(*shape)
