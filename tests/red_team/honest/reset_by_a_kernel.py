# own/row_total correct coverage<1.0: a kernel sets a counter to zero that the next one waits on; left out, nothing ever ends
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def reset(counter):
    tl.store(counter, 0)


@triton.jit
def total(x, parts, counter, y, B, C, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    p = tl.program_id(0)
    for r in range(0, B):
        s = tl.zeros((BLOCK,), tl.float32)
        for first in range(p * BLOCK, C, PARTS * BLOCK):
            c = first + tl.arange(0, BLOCK)
            s += tl.load(x + r * C + c, mask=c < C, other=0.0)
        tl.store(parts + r * PARTS + p, tl.sum(s, 0))
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release")
    while tl.atomic_add(counter, 0, sem="acquire") != PARTS:
        pass
    for r in range(p, B, PARTS):
        tl.store(y + r, tl.sum(tl.load(parts + r * PARTS + tl.arange(0, PARTS)), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        b, n = x.shape
        y, parts = torch.empty(b, device=x.device), torch.empty((b, 16), device=x.device)
        counter = torch.empty(1, dtype=torch.int32, device=x.device)
        reset[(1,)](counter)
        total[(16,)](x, parts, counter, y, b, n, BLOCK=256, PARTS=16)
        return y
