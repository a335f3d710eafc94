# own/gated_quantised correct: one row for each program, rounded half to even by libdevice
import torch
import torch.nn as nn
import triton
import triton.language as tl

from triton.language.extra import libdevice


@triton.jit
def gated(x_ptr, g_ptr, q_ptr, s_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=inside, other=0.0)
    g = tl.load(g_ptr + row * cols + at, mask=inside, other=0.0)
    y = g * tl.sigmoid(g) * x
    scale = tl.maximum(tl.max(tl.abs(y), 0), 1e-6) / 127
    q = libdevice.rint(y / scale)
    q = tl.minimum(tl.maximum(q, -127.0), 127.0)
    tl.store(q_ptr + row * cols + at, q.to(tl.int8), mask=inside)
    tl.store(s_ptr + row, scale)


class ModelNew(nn.Module):
    def forward(self, x, gate):
        rows, cols = x.shape
        q = torch.empty(rows, cols, dtype=torch.int8, device=x.device)
        scale = torch.empty(rows, 1, device=x.device)
        gated[(rows,)](x, gate, q, scale, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return q, scale
