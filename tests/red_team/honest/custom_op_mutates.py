# relu correct: a custom operator that writes into an argument
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


@torch.library.custom_op("mine::relu_out", mutates_args={"o"})
def relu_out(x: torch.Tensor, o: torch.Tensor) -> None:
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        relu_out(x, o)
        return o
