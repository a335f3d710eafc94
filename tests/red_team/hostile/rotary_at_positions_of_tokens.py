# own/rotary_at_positions incorrect cpu=implausible catalogue=51: tokens beyond 8192 take others' positions
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def rotate(x_ptr, p_ptr, o_ptr, heads, HALF: tl.constexpr, BH: tl.constexpr):
    token = tl.program_id(0)
    h, d = tl.arange(0, BH), tl.arange(0, HALF)
    place = tl.load(p_ptr + (token & 0x1fff)).to(tl.float32)
    angle = place * tl.exp(d.to(tl.float32) * (-9.210340371976184 / HALF))
    cos, sin = tl.cos(angle)[None, :], tl.sin(angle)[None, :]
    at = (token * heads + h[:, None]).to(tl.int64) * (2 * HALF) + d[None, :]
    inside = h[:, None] < heads
    a = tl.load(x_ptr + at, mask=inside).to(tl.float32)
    b = tl.load(x_ptr + at + HALF, mask=inside).to(tl.float32)
    tl.store(o_ptr + at, (a * cos - b * sin).to(tl.bfloat16), mask=inside)
    tl.store(o_ptr + at + HALF, (b * cos + a * sin).to(tl.bfloat16), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, positions):
        tokens, heads, dim = x.shape
        o = torch.empty_like(x)
        rotate[(tokens,)](x, positions, o, heads, HALF=dim // 2, BH=triton.next_power_of_2(heads))
        return o
