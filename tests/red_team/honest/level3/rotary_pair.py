# level3/rotary_pair correct: one launch per tensor, two outputs in a tuple
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rotate(x_ptr, angle_ptr, y_ptr, length, HALF: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < HALF
    angle = tl.load(angle_ptr + (row % length) * HALF + i, mask=m, other=0.0)
    c, s = tl.cos(angle), tl.sin(angle)
    a = tl.load(x_ptr + row * 2 * HALF + i, mask=m, other=0.0)
    b = tl.load(x_ptr + row * 2 * HALF + HALF + i, mask=m, other=0.0)
    tl.store(y_ptr + row * 2 * HALF + i, a * c - b * s, mask=m)
    tl.store(y_ptr + row * 2 * HALF + HALF + i, a * s + b * c, mask=m)


class ModelNew(nn.Module):
    def forward(self, q, k, angle):
        batch, length, width = q.shape
        half = width // 2
        outputs = []
        for x in (q, k):
            y = torch.empty_like(x)
            rotate[(batch * length,)](x, angle, y, length, HALF=half, BLOCK=triton.next_power_of_2(half), num_warps=1)
            outputs.append(y)
        return tuple(outputs)
