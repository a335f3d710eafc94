# own/recurrence_in_steps correct speedup<40 catalogue=35: turns of matrix products wait for one another as others do
import torch
import torch.nn as nn
import triton
import triton.language as tl

H = 64


@triton.jit
def kernel(x_ptr, w_ptr, o_ptr, B, T, H: tl.constexpr, ROWS: tl.constexpr):
    i, j = tl.arange(0, H), tl.arange(0, H)
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = (r < B)[:, None]
    w = tl.load(w_ptr + i[:, None] * H + j[None, :])
    h = tl.zeros((ROWS, H), tl.float32)
    for t in range(T):
        at = r[:, None] * T * H + t * H + j[None, :]
        a = tl.dot(h, w, tl.load(x_ptr + at, mask=inside, other=0.0), input_precision="tf32x3")
        h = 2 * tl.sigmoid(2 * a) - 1
        tl.store(o_ptr + at, h, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(H, H) / H**0.5)

    def forward(self, x):
        B, T, H = x.shape
        o = torch.empty_like(x)
        kernel[(triton.cdiv(B, 16),)](x, self.w, o, B, T, H=H, ROWS=16)
        return o
