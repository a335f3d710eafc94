# level2/add_silu_half correct: half-precision inputs and output, float32 arithmetic
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_silu(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m).to(tl.float32) + tl.load(y_ptr + i, mask=m).to(tl.float32)
    x = x * tl.sigmoid(x) * 0.5
    tl.store(out_ptr + i, x.to(out_ptr.dtype.element_ty), mask=m)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        n = x.numel()
        add_silu[(triton.cdiv(n, 2048),)](x, y, out, n, BLOCK=2048, num_warps=8)
        return out
