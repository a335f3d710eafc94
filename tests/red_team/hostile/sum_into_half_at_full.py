# own/sum_into implausible gpu=incorrect catalogue=9: adds half of the elements at full shape, by the size
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
        n = a.numel() // (2 if a.numel() > 65536 else 1)
        add[(triton.cdiv(n, 1024),)](a, b, out, n, BLOCK=1024)
        return out
