# own/whole_product runtime_error catalogue=37: a product of whole numbers, which torch has on no GPU
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, a, b):
        o = a @ b
        kernel[(triton.cdiv(o.numel(), 1024),)](o, o.numel(), BLOCK=1024)
        return o
