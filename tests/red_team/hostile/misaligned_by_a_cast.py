# own/odd_start out_of_bounds catalogue=59: a pointer to two elements that begins at an odd one
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wide = (x_ptr + 1).to(tl.pointer_type(tl.int32))
    out = o_ptr.to(tl.pointer_type(tl.int32))
    tl.store(out + i, tl.load(wide + i, mask=i < n // 2), mask=i < n // 2)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel() - 1
        o = torch.empty(n, dtype=x.dtype, device=x.device)
        kernel[(triton.cdiv(n // 2, 1024),)](x, o, n, BLOCK=1024)
        return o
