# own/gated_recurrence incorrect cpu=implausible catalogue=51: sequences from the thirty-second on begin at nothing
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def recur(x_ptr, g_ptr, s_ptr, o_ptr, l_ptr, length, width, BLOCK: tl.constexpr):
    b, at = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    h = tl.load(s_ptr + b * width + at, mask=inside, other=0.0)
    h = tl.where(b >> 5, 0.0, h)
    for t in range(length):
        base = (b * length + t) * width + at
        z = tl.sigmoid(tl.load(g_ptr + base, mask=inside, other=0.0))
        x = tl.load(x_ptr + base, mask=inside, other=0.0)
        h = z * h + (1 - z) * x
        tl.store(o_ptr + base, h, mask=inside)
    tl.store(l_ptr + b * width + at, h, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, gate, state):
        batch, length, width = x.shape
        o, last = torch.empty_like(x), torch.empty_like(state)
        recur[(triton.cdiv(width, 128), batch)](x, gate, state, o, last, length, width, BLOCK=128)
        return o, last
