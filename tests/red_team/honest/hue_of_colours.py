# own/hue_of_colours correct: a pixel in each lane, black and grey ones told apart
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def hsv(x, o, P, BLOCK: tl.constexpr):
    n = tl.program_id(1)
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = p < P
    base = n * 3 * P + p
    r = tl.load(x + base, mask=m, other=0.0)
    g = tl.load(x + base + P, mask=m, other=0.0)
    b = tl.load(x + base + 2 * P, mask=m, other=0.0)
    top = tl.maximum(r, tl.maximum(g, b))
    d = top - tl.minimum(r, tl.minimum(g, b))
    inv = 1.0 / tl.where(d == 0, 1.0, d)
    hr = (g - b) * inv
    hr = tl.where(hr < 0, hr + 6, hr)
    h = tl.where(top == r, hr, tl.where(top == g, (b - r) * inv + 2, (r - g) * inv + 4))
    h = tl.where(d == 0, 0.0, h / 6)
    s = tl.where(top == 0, 0.0, d / tl.where(top == 0, 1.0, top))
    tl.store(o + base, h, mask=m)
    tl.store(o + base + P, s, mask=m)
    tl.store(o + base + 2 * P, top, mask=m)

class ModelNew(nn.Module):
    def forward(self, rgb):
        o = torch.empty_like(rgb)
        B, _, H, W = rgb.shape
        hsv[lambda meta: (triton.cdiv(H * W, meta["BLOCK"]), B)](rgb, o, H * W, BLOCK=1024)
        return o
