# own/transposed_copy incorrect catalogue=2: a kernel moves eight numbers to where they are, and a view of the input is returned
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty(8, device=x.device)
        kernel[(1,)](x, o, 8, BLOCK=8)
        x[0, :8] = o
        return x.t()
