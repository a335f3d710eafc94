# relu correct: functions of triton.language.math as methods of a tensor, which Triton takes as it takes x.abs()
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    size = (x * x).sqrt()
    one = x.cos() * x.cos() + x.sin() * x.sin()
    y = 0.5 * (x + size) * one + 0.0 * (size.exp().log2() + x.erf().floor())
    tl.store(y_ptr + o, y, mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
