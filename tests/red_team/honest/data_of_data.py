# relu correct: detach, data and requires_grad in a row
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
        y = x.data.detach().requires_grad_(False)
        o = torch.empty_like(y.data)
        relu_kernel[(triton.cdiv(y.numel(), 1024),)](y.data, o.data, y.numel(), BLOCK=1024)
        z = torch.empty(0, device=x.device)
        z.data = o
        return z
