# own/quantised_rows correct: quotients in float32 round to the other neighbour as often as the reference does
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def quantise(x, y, s, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=0.0).to(tl.float32)
    scale = (tl.max(tl.abs(v), 0) / 127.0).to(tl.float16)
    q = v / scale.to(tl.float32)
    tl.store(y + row * cols + i, libdevice.rint(q).to(tl.int8), mask=i < cols)
    tl.store(s + row, scale)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape, dtype=torch.int8, device=x.device)
        s = torch.empty(x.shape[0], 1, dtype=torch.float16, device=x.device)
        quantise[(x.shape[0],)](x, y, s, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y, s
