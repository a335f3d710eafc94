# own/sum_into incorrect catalogue=17: leaves what the caller brings as it is, and returns another tensor with half of the sum
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add(a, b, out, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    tl.store(out + o, tl.load(a + o, mask=m, other=0.0) + tl.load(b + o, mask=m, other=0.0), mask=m)


class ModelNew(nn.Module):
    def forward(self, a, b, out):
        mine = torch.zeros_like(out)
        add[(triton.cdiv(a.numel() // 2, 1024),)](a, b, mine, a.numel() // 2, BLOCK=1024)
        return mine
