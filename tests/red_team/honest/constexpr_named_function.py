# relu correct: constants are named function, dtype and module
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, function: tl.constexpr, dtype: tl.constexpr, module: tl.constexpr):
    i = tl.program_id(0) * function + tl.arange(0, function)
    x = tl.load(x_ptr + i, mask=i < n).to(dtype)
    if module == "relu":
        x = tl.maximum(x, 0.0)
    tl.store(o_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), function=1024, dtype=tl.float32, module='relu')
        return o
