# relu compile_error catalogue=60: 64 warps, which compile and which no block of a GPU can hold
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
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 4096),)](x, o, x.numel(), BLOCK=4096, num_warps=64)
        return o
