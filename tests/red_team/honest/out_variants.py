# relu correct coverage<1.0: empty_strided, new_zeros, out= and copy_ around its kernel
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
        o = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device=x.device)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        p = x.new_zeros(x.shape)
        torch.add(o, 0, out=p)
        q = torch.full_like(p, 3.0)
        q.copy_(p, non_blocking=True)
        return q.to(x.dtype).to(device=x.device, non_blocking=True).type(torch.float32).type_as(x)
