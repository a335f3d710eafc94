# own/bin_counts correct speedup<1.3 catalogue=48: an atomic for each number, as torch has it; 65,536 of them wait for one word
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0)
    tl.atomic_add(o_ptr + x, tl.full((BLOCK,), 1, tl.int64), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.zeros(64, dtype=torch.int64, device=x.device)
        count[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
