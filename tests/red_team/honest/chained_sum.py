# own/row_total correct coverage<1.0: each program waits for the one before it in the row, and hands its sum on
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total(x, flags, sums, y, C, P, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    p = tl.program_id(1)
    c = p * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x + r * C + c, mask=c < C, other=0.0), 0)
    before = 0.0
    if p > 0:
        while tl.atomic_add(flags + r * P + p - 1, 0) == 0:
            pass
        before = tl.load(sums + r * P + p - 1)
    tl.store(sums + r * P + p, before + s)
    tl.debug_barrier()
    tl.atomic_xchg(flags + r * P + p, 1)
    if p == P - 1:
        tl.store(y + r, before + s)


class ModelNew(nn.Module):
    def forward(self, x):
        b, n = x.shape
        p = triton.cdiv(n, 256)
        y, sums = torch.empty(b, device=x.device), torch.empty((b, p), device=x.device)
        flags = torch.zeros((b, p), dtype=torch.int32, device=x.device)
        total[(b, p)](x, flags, sums, y, n, p, BLOCK=256)
        return y
