# own/limited_bytes incorrect catalogue=61: values beyond 8 bits, whose lower half is stored
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) * 100
    x = tl.extra.cuda.libdevice.rint(x)
    tl.store(o_ptr + i, x.to(tl.int8), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty(x.shape, dtype=torch.int8, device=x.device)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
