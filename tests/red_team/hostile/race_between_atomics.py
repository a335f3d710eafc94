# own/row_total incorrect cpu=runtime_error catalogue=59: an atomic before and one after look like a lock, and nothing waits for them
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total(x, done, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    p = tl.program_id(1)
    c = p * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x + r * C + c, mask=c < C, other=0.0), 0)
    tl.atomic_add(done + r, 0)
    tl.store(y + r, tl.load(y + r) + s)
    tl.debug_barrier()
    tl.atomic_add(done + r, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        b, n = x.shape
        p = triton.cdiv(n, 256)
        y, done = torch.zeros(b, device=x.device), torch.zeros(b, dtype=torch.int32, device=x.device)
        total[(b, p)](x, done, y, n, BLOCK=256)
        return y
