# own/row_total incorrect cpu=runtime_error|incorrect catalogue=59: the program with the last number reads what the others add by atomics, and does not wait for them
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total(x, sums, y, C, P, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    p = tl.program_id(1)
    c = p * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x + r * C + c, mask=c < C, other=0.0), 0)
    two = tl.arange(0, 2)
    tl.atomic_add(sums + 2 * r + two, tl.where(two == 0, s, 0.0))
    if p == P - 1:
        tl.store(y + r, tl.sum(tl.load(sums + 2 * r + two), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        b, n = x.shape
        p = triton.cdiv(n, 256)
        y, sums = torch.empty(b, device=x.device), torch.zeros((b, 2), device=x.device)
        total[(b, p)](x, sums, y, n, p, BLOCK=256)
        return y
