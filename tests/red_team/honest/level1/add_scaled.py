# level1/add_scaled correct: a Python number among the inputs becomes a kernel argument
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_scaled(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=m) + alpha * tl.load(y_ptr + i, mask=m), mask=m)


class ModelNew(nn.Module):
    def forward(self, x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()
        add_scaled[(triton.cdiv(n, 1024),)](x, y, out, alpha, n, BLOCK=1024)
        return out
