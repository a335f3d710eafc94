# own/lengths correct catalogue=57: a loop counts up to a length that is drawn
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_within(x_ptr, lengths_ptr, y_ptr, L, D, ROWS: tl.constexpr, COLS: tl.constexpr):
    b = tl.program_id(0)
    d = tl.program_id(1) * COLS + tl.arange(0, COLS)
    n = tl.load(lengths_ptr + b)
    total = tl.zeros((ROWS, COLS), tl.float32)
    first = 0
    while first < n:
        t = first + tl.arange(0, ROWS)
        places = (b * L + t)[:, None] * D + d[None, :]
        total += tl.load(x_ptr + places, mask=(t < n)[:, None] & (d < D)[None, :], other=0.0)
        first += ROWS
    tl.store(y_ptr + b * D + d, tl.sum(total, 0) / n, mask=d < D)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        b, l, d = x.shape
        y = torch.empty(b, d, device=x.device)
        mean_within[(b, triton.cdiv(d, 64))](x, lengths, y, l, d, ROWS=8, COLS=64)
        return y
