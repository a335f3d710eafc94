# own/recurrence_in_steps correct speedup<60 catalogue=35: each turn reads from memory what the turn before has stored there
import torch
import torch.nn as nn
import triton
import triton.language as tl


H = 64


@triton.jit
def kernel(x_ptr, w_ptr, o_ptr, T, H: tl.constexpr):
    i, j = tl.arange(0, H), tl.arange(0, H)
    w = tl.load(w_ptr + i[:, None] * H + j[None, :])
    row = tl.program_id(0) * T * H
    t = 0
    while t < T:
        before = tl.load(o_ptr + row + (t - 1) * H + i, mask=(i < H) & (t > 0), other=0.0)
        a = tl.load(x_ptr + row + t * H + j) + tl.sum(before[:, None] * w, 0)
        tl.store(o_ptr + row + t * H + j, 2 * tl.sigmoid(2 * a) - 1)
        tl.debug_barrier()
        t += 1


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(H, H) / H**0.5)

    def forward(self, x):
        B, T, H = x.shape
        o = torch.empty_like(x)
        kernel[(B,)](x, self.w, o, T, H=H)
        return o
