# own/row_total correct coverage<1.0: under a lock, the first that comes stores its part and the others add to it, as in Triton's tutorial on layer norms
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total(x, lock, count, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    p = tl.program_id(1)
    c = p * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x + r * C + c, mask=c < C, other=0.0), 0)
    while tl.atomic_cas(lock + r, 0, 1) == 1:
        pass
    if tl.load(count + r) == 0:
        tl.atomic_xchg(count + r, 1)
    else:
        s += tl.load(y + r)
    tl.store(y + r, s)
    tl.debug_barrier()
    tl.atomic_xchg(lock + r, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        b, n = x.shape
        p = triton.cdiv(n, 256)
        y = torch.empty(b, device=x.device)
        lock, count = torch.zeros((2, b), dtype=torch.int32, device=x.device)
        total[(b, p)](x, lock, count, y, n, BLOCK=256)
        return y
