# own/between_directions correct: an arc, and a line where it has no length
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice
@triton.jit
def slerp(a_ptr, b_ptr, t_ptr, o_ptr, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < D
    a = tl.load(a_ptr + row * D + c, mask=m, other=0.0)
    b = tl.load(b_ptr + row * D + c, mask=m, other=0.0)
    t = tl.load(t_ptr + row)
    a = a / tl.sqrt(tl.sum(a * a, 0))
    b = b / tl.sqrt(tl.sum(b * b, 0))
    dot = tl.sum(a * b, 0)
    b = tl.where(dot < 0, -b, b)
    dot = tl.abs(dot)
    theta = libdevice.acos(tl.minimum(dot, 1.0))
    s = tl.sin(theta)
    far = dot <= 0.9995
    safe = tl.where(far, s, 1.0)
    wa = tl.where(far, tl.sin((1 - t) * theta) / safe, 1 - t)
    wb = tl.where(far, tl.sin(t * theta) / safe, t)
    tl.store(o_ptr + row * D + c, wa * a + wb * b, mask=m)

class ModelNew(nn.Module):
    def forward(self, a, b, t):
        o = torch.empty_like(a)
        slerp[(a.shape[0],)](a, b, t, o, a.shape[1], BLOCK=triton.next_power_of_2(a.shape[1]))
        return o
