# level1/depthwise_conv1d correct: an unrolled loop over the taps, with padding by masks
import torch
import torch.nn as nn
import triton
import triton.language as tl

CHANNELS = 256


@triton.jit
def conv(x_ptr, w_ptr, y_ptr, C, S, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    p = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for tap in tl.static_range(4):
        q = p + (tap - 3)
        x = tl.load(x_ptr + line * S + q, mask=(q >= 0) & (q < S), other=0.0)
        acc += x * tl.load(w_ptr + (line % C) * 4 + tap)
    tl.store(y_ptr + line * S + p, acc, mask=p < S)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CHANNELS, 1, 4))

    def forward(self, x):
        batch, channels, size = x.shape
        y = torch.empty_like(x)
        conv[(batch * channels, triton.cdiv(size, 1024))](x, self.weight, y, channels, size, BLOCK=1024)
        return y
