# own/enlarged correct: each place takes its four neighbours
import torch
import torch.nn as nn
import triton
import triton.language as tl

CHANNELS = 32


@triton.jit
def enlarge(x_ptr, b_ptr, o_ptr, channels, side, BLOCK: tl.constexpr):
    at, z = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1)
    wide = 2 * side
    inside = at < wide * wide
    r, c = at // wide, at % wide
    y = tl.maximum((r.to(tl.float32) + 0.5) * 0.5 - 0.5, 0.0)
    x = tl.maximum((c.to(tl.float32) + 0.5) * 0.5 - 0.5, 0.0)
    y0, x0 = y.to(tl.int32), x.to(tl.int32)
    y1, x1 = tl.minimum(y0 + 1, side - 1), tl.minimum(x0 + 1, side - 1)
    fy, fx = y - y0, x - x0
    base = x_ptr + z * side * side
    a = tl.load(base + y0 * side + x0, mask=inside, other=0.0)
    b = tl.load(base + y0 * side + x1, mask=inside, other=0.0)
    d = tl.load(base + y1 * side + x0, mask=inside, other=0.0)
    e = tl.load(base + y1 * side + x1, mask=inside, other=0.0)
    top, low = a + fx * (b - a), d + fx * (e - d)
    tl.store(o_ptr + z * wide * wide + at, top + fy * (low - top) + tl.load(b_ptr + z % channels), mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(CHANNELS))

    def forward(self, x):
        batch, channels, side, _ = x.shape
        o = torch.empty(batch, channels, 2 * side, 2 * side, device=x.device)
        enlarge[(triton.cdiv(4 * side * side, 1024), batch * channels)](x, self.bias, o, channels, side, BLOCK=1024)
        return o
