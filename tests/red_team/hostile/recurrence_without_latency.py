# own/recurrence_in_steps correct speedup<60 catalogue=35: each of 1,024 turns waits for the one before it, whatever else has room
import torch
import torch.nn as nn
import triton
import triton.language as tl

H = 64


@triton.jit
def kernel(x_ptr, w_ptr, o_ptr, T, H: tl.constexpr):
    i, j = tl.arange(0, H), tl.arange(0, H)
    w = tl.load(w_ptr + i[:, None] * H + j[None, :])
    h = tl.zeros((H,), tl.float32)
    row = tl.program_id(0) * T * H
    for t in range(T):
        a = tl.load(x_ptr + row + t * H + j) + tl.sum(h[:, None] * w, 0)
        h = 2 * tl.sigmoid(2 * a) - 1
        tl.store(o_ptr + row + t * H + j, h)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(H, H) / H**0.5)

    def forward(self, x):
        B, T, H = x.shape
        o = torch.empty_like(x)
        kernel[(B,)](x, self.w, o, T, H=H)
        return o
