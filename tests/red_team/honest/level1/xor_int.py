# level1/xor_int correct: 32-bit integers in and out
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def xor(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=m) ^ tl.load(y_ptr + i, mask=m), mask=m)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        n = x.numel()
        xor[(triton.cdiv(n, 2048),)](x, y, out, n, BLOCK=2048)
        return out
