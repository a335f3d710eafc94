# relu correct: triton.jit with options, a helper that is not inlined, a kernel with a name of its own
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit(noinline=True)
def low(x):
    return tl.maximum(x, 0.0)


@triton.jit(do_not_specialize=["n"], debug=False)
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, low(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
