# relu correct: a helper asks whether it was given a tensor descriptor or a pointer, as Triton's attention tutorial does
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def described(given, n, BLOCK: tl.constexpr):
    if isinstance(given, tl.tensor_descriptor):
        return given
    else:
        return tl.make_tensor_descriptor(given, shape=[n], strides=[1], block_shape=[BLOCK])


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    source = described(x, n, BLOCK)
    target = described(y, n, BLOCK)
    start = tl.program_id(0) * BLOCK
    target.store([start], tl.maximum(source.load([start]), 0.0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        kernel[(triton.cdiv(n, 1024),)](TensorDescriptor(x.view(-1), [n], [1], [1024]), y, n, BLOCK=1024)
        return y
