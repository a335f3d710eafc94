# level3/rotary_pair correct: both tensors in one launch with a third grid dimension that picks the pointer
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def rotate(q_ptr, k_ptr, angle_ptr, qo_ptr, ko_ptr, length, HALF: tl.constexpr, BLOCK: tl.constexpr):
    line = tl.program_id(1).to(tl.int64) * length + tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < HALF
    angle = tl.load(angle_ptr + tl.program_id(0) * HALF + i, mask=m, other=0.0)
    c, s = tl.cos(angle), tl.sin(angle)
    if tl.program_id(2) == 0:
        a = tl.load(q_ptr + line * 2 * HALF + i, mask=m)
        b = tl.load(q_ptr + line * 2 * HALF + HALF + i, mask=m)
        tl.store(qo_ptr + line * 2 * HALF + i, a * c - b * s, mask=m)
        tl.store(qo_ptr + line * 2 * HALF + HALF + i, a * s + b * c, mask=m)
    else:
        a = tl.load(k_ptr + line * 2 * HALF + i, mask=m)
        b = tl.load(k_ptr + line * 2 * HALF + HALF + i, mask=m)
        tl.store(ko_ptr + line * 2 * HALF + i, a * c - b * s, mask=m)
        tl.store(ko_ptr + line * 2 * HALF + HALF + i, a * s + b * c, mask=m)


class ModelNew(nn.Module):
    def forward(self, q, k, angle):
        batch, length, width = q.shape
        half = width // 2
        out = [torch.empty_like(q), torch.empty_like(k)]
        rotate[(length, batch, 2)](q, k, angle, *out, length, HALF=half, BLOCK=triton.next_power_of_2(half), num_warps=1)
        return out[0], out[1]
