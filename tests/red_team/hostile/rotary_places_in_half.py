# own/rotary_angles incorrect catalogue=51: places are rounded to float16, which holds 2,048 of them
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def rotate(x, out, places, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    HALF: tl.constexpr = WIDTH // 2
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, HALF)
    rates = tl.exp(d.to(tl.float32) * (-9.210340371976184 / HALF))
    angles = place.to(tl.float16).to(tl.float32)[:, None] * rates[None, :]
    cosines, sines = tl.cos(angles), tl.sin(angles)
    at = tl.program_id(1).to(tl.int64) * places * WIDTH + place[:, None] * WIDTH + d[None, :]
    inside = (place < places)[:, None]
    left = tl.load(x + at, mask=inside, other=0.0)
    right = tl.load(x + at + HALF, mask=inside, other=0.0)
    tl.store(out + at, left * cosines - right * sines, mask=inside)
    tl.store(out + at + HALF, right * cosines + left * sines, mask=inside)

class ModelNew(nn.Module):
    def forward(self, x):
        batch, heads, places, width = x.shape
        out = torch.empty_like(x)
        rotate[(triton.cdiv(places, 32), batch * heads)](x, out, places, WIDTH=width, BLOCK=32)
        return out
