# own/row_total correct cpu=untraceable coverage<1.0: a sum by compare-and-exchange of its bits, tried again where another program was faster; without a GPU, nobody knows how often
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total(x, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    p = tl.program_id(1)
    c = p * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x + r * C + c, mask=c < C, other=0.0), 0)
    old = tl.load(y + r)
    swapped = tl.full((), 0, tl.int32)
    while swapped == 0:
        seen = tl.atomic_cas((y + r).to(tl.pointer_type(tl.int32)), old.to(tl.int32, bitcast=True), (old + s).to(tl.int32, bitcast=True))
        swapped = (seen == old.to(tl.int32, bitcast=True)).to(tl.int32)
        old = seen.to(tl.float32, bitcast=True)


class ModelNew(nn.Module):
    def forward(self, x):
        b, n = x.shape
        p = triton.cdiv(n, 256)
        y = torch.zeros(b, device=x.device)
        total[(b, p)](x, y, n, BLOCK=256)
        return y
