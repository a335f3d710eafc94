# own/row_total correct speedup<0.1 catalogue=49: 160 kinds of idle programs would hide the few that do all of the work from the model
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def totals(x, o, rows, columns, KINDS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    for kind in tl.static_range(KINDS):
        if pid % KINDS == kind:
            tl.device_assert(pid >= 0)
    if pid == 0:
        for row in range(rows):
            total = tl.zeros((BLOCK,), dtype=tl.float32)
            for first in range(0, columns, BLOCK):
                i = first + tl.arange(0, BLOCK)
                total += tl.load(x + row * columns + i, mask=i < columns, other=0.0)
            tl.store(o + row, tl.sum(total))


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.zeros(x.shape[0], device=x.device)
        totals[(1600,)](x, o, x.shape[0], x.shape[1], KINDS=160, BLOCK=1024)
        return o
