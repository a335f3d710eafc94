# own/window_partition correct: where a row begins is computed once for all of its channels, which are few where results are compared
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def part(x_ptr, o_ptr, h, w, c, W: tl.constexpr, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    inside = row % (W * W)
    window = row // (W * W)
    across = w // W
    wx = window % across
    wy = (window // across) % (h // W)
    b = window // (across * (h // W))
    y = (wy * W + inside // W + SHIFT) % h
    x = (wx * W + inside % W + SHIFT) % w
    at = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + ((b * h + y) * w + x) * c + at, mask=at < c)
    tl.store(o_ptr + row * c + at, v, mask=at < c)

class ModelNew(nn.Module):
    def forward(self, x):
        b, h, w, c = x.shape
        out = torch.empty(b * (h // 7) * (w // 7), 49, c, device=x.device, dtype=x.dtype)
        part[(b * h * w,)](x, out, h, w, c, W=7, SHIFT=3, BLOCK=triton.next_power_of_2(c))
        return out
