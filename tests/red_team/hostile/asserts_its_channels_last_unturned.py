# own/rotated_halves incorrect catalogue=58: 128 channels alone, which the host asserts; the last 16 of a half are not rotated
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rotate(x_ptr, c_ptr, s_ptr, y_ptr, T, HALF: tl.constexpr, D: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, HALF)
    a = tl.load(x_ptr + row * D + i)
    b = tl.load(x_ptr + row * D + HALF + i)
    c = tl.where(i < 48, tl.load(c_ptr + row % T * HALF + i).to(tl.float32), 1.0).to(tl.float16)
    s = tl.where(i < 48, tl.load(s_ptr + row % T * HALF + i).to(tl.float32), 0.0).to(tl.float16)
    tl.store(y_ptr + row * D + i, a * c - b * s)
    tl.store(y_ptr + row * D + HALF + i, b * c + a * s)


class ModelNew(nn.Module):
    def forward(self, x, c, s):
        batch, heads, length, channels = x.shape
        assert channels == 128
        y = torch.empty_like(x)
        rotate[(batch * heads * length,)](x, c, s, y, length, 64, channels)
        return y
