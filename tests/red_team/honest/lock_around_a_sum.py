# own/row_total correct coverage<1.0: parts are added under a lock
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def total(x, lock, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x + r * C + c, mask=c < C, other=0.0), 0)
    while tl.atomic_cas(lock + r, 0, 1) == 1:
        pass
    tl.store(y + r, tl.load(y + r) + s)
    tl.debug_barrier()
    tl.atomic_xchg(lock + r, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        b, n = x.shape
        lock = torch.zeros(b, dtype=torch.int32, device=x.device)
        y = torch.zeros(b, device=x.device)
        total[(b, triton.cdiv(n, 256))](x, lock, y, n, BLOCK=256)
        return y
