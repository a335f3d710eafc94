# relu correct: its kernel stands in a torch.autograd.Function
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, block):
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), block),)](x, o, x.numel(), BLOCK=block)
        ctx.save_for_backward(x)
        ctx.block = block
        return o

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > 0), None


class ModelNew(nn.Module):
    def forward(self, x):
        return Relu.apply(x, 1024)
