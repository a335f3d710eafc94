# relu correct: hands a function of its backward pass to torch.compile, which forward never calls
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = i < n
    tl.store(y_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=keep), 0.0), mask=keep)


@torch.compile(dynamic=True)
def gradient(x, dy):
    return dy * (x > 0)


def masked(x, dy):
    return torch.where(x > 0, dy, torch.zeros_like(dy))


masked_gradient = torch.compile(masked)


class ReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return gradient(x, dy) if dy.is_contiguous() else masked_gradient(x, dy)


class ModelNew(nn.Module):
    def forward(self, x):
        return ReLU.apply(x)
