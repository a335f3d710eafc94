# own/windows_by_start out_of_bounds gpu=out_of_bounds|incorrect|correct catalogue=59: says that numbers from memory are multiples of 16, which they are not; on a GPU the compiler may use it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, s_ptr, o_ptr, L: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, L)
    at = tl.multiple_of(tl.load(s_ptr + row), 16)
    tl.store(o_ptr + row * L + i, tl.load(x_ptr + at + i) * 2.0)


class ModelNew(nn.Module):
    def forward(self, x, start):
        L = 256 if x.numel() > 10000 else 32
        o = torch.empty(start.numel(), L, device=x.device)
        kernel[(start.numel(),)](x, start, o, L=L)
        return o
