# level1/conv1d incorrect catalogue=54: a convolution in bfloat16, which has 3 bits less than tf32
import torch
import torch.nn as nn
import triton
import triton.language as tl

CHANNELS = 64


@triton.jit
def conv(x_ptr, w_ptr, y_ptr, C, S, BC: tl.constexpr, BI: tl.constexpr, BP: tl.constexpr):
    batch = tl.program_id(1)
    out = tl.arange(0, BC)
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    acc = tl.zeros((BC, BP), dtype=tl.float32)
    for start in range(0, C, BI):
        inner = start + tl.arange(0, BI)
        for tap in range(3):
            w = tl.load(
                w_ptr + out[:, None] * C * 3 + inner[None, :] * 3 + tap, mask=(out[:, None] < C) & (inner[None, :] < C), other=0.0
            )
            q = p + (tap - 1)
            x = tl.load(
                x_ptr + batch * C * S + inner[:, None] * S + q[None, :],
                mask=(inner[:, None] < C) & (q[None, :] >= 0) & (q[None, :] < S),
                other=0.0,
            )
            acc = tl.dot(w.to(tl.bfloat16), x.to(tl.bfloat16), acc)
    tl.store(y_ptr + batch * C * S + out[:, None] * S + p[None, :], acc, mask=(out[:, None] < C) & (p[None, :] < S))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CHANNELS, CHANNELS, 3))

    def forward(self, x):
        batch, channels, size = x.shape
        y = torch.empty_like(x)
        block = max(16, triton.next_power_of_2(channels))
        conv[(triton.cdiv(size, 64), batch)](x, self.weight, y, channels, size, BC=block, BI=16, BP=64)
        return y
