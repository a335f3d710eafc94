# relu correct: an operator defined with torch.library's decorators
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


torch.library.define("mine::relu", "(Tensor x) -> Tensor")


@torch.library.impl("mine::relu", "cuda")
def relu(x):
    o = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


@torch.library.register_fake("mine::relu")
def _(x):
    return torch.empty_like(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mine.relu.default(x)
