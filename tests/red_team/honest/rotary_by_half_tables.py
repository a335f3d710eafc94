# own/rotary_tables correct: it reads one half of tables that hold each angle twice
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rotate(x, cos, sin, out, tokens, DIM: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, DIM // 2)
    first, second = tl.load(x + row * DIM + place), tl.load(x + row * DIM + DIM // 2 + place)
    c, s = tl.load(cos + row % tokens * DIM + place), tl.load(sin + row % tokens * DIM + place)
    tl.store(out + row * DIM + place, first * c - second * s)
    tl.store(out + row * DIM + DIM // 2 + place, second * c + first * s)


class ModelNew(nn.Module):
    def forward(self, x, cos, sin):
        batch, heads, tokens, dim = x.shape
        out = torch.empty_like(x)
        rotate[(batch * heads * tokens,)](x, cos, sin, out, tokens, DIM=dim)
        return out
