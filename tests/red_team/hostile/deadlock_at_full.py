# relu timeout cpu=correct catalogue=75: every program waits for the last one, which has no place on the GPU while they wait; at the small shape there is one program
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tl.atomic_xchg(flag_ptr, 1)
    while tl.atomic_cas(flag_ptr, 1, 1) == 0:
        pass
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        flag = torch.zeros(1, dtype=torch.int32, device=x.device)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, flag, x.numel(), BLOCK=1024)
        return o
